//! The phases of a training step of a small MLP under DistributedDataParallel.
//!
//! ```text
//! main      |load|to|zero|==== forward ====|.. waits ..|step|item|
//! backward                                 |=backward=|
//! stream 7         |c|  |k k k k k k k k k  k k k k k k|  |k k|c|
//! stream 20                                    |=nccl=|=nccl=|
//! ```

use std::io::{self, Write};

use super::worker::{COMM_STREAM, FIRST_STREAM, Kernel, Op, Thread, Worker};
use super::{Sink, Size, Spec, as_u64};
use crate::collective::Collective;
use crate::dialect::{Backend, Merge};
use crate::modify::Input;
use crate::trace::Trace;
use crate::value::Json;

/// Start of the capture, in ns after the base: a process that has run for two weeks.
const CAPTURE_START: i64 = 1_209_600_000_000_000;
const TOKENS: i64 = 2048;
const HIDDEN: i64 = 1024;
/// Parameters of one layer, weight and bias.
const LAYER_PARAMETERS: i64 = HIDDEN * HIDDEN + HIDDEN;
/// Bytes of one bf16 activation.
const ACTIVATION_BYTES: i64 = TOKENS * HIDDEN * 2;
/// Layers whose gradients are reduced together.
const LAYERS_PER_BUCKET: i64 = 2;

const ELEMENTWISE: &str = "void at::native::vectorized_elementwise_kernel<4, \
     at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#1}, \
     std::array<char*, 2ul> >(int, at::native::GeluCUDAKernelImpl, std::array<char*, 2ul>)";
const ELEMENTWISE_BACKWARD: &str = "void at::native::vectorized_elementwise_kernel<4, \
     at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#1}, \
     std::array<char*, 3ul> >(int, at::native::GeluBackwardCUDAKernelImpl, std::array<char*, 3ul>)";
const LOSS: &str = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, \
     at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4> >";
const MULTI_TENSOR: &str = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<\
     at::native::(anonymous namespace)::TensorListMetadata<4>, AdamMathFunctor<float, 4> >";

/// An empty trace with the header of the run.
pub(super) fn header(spec: &Spec) -> Trace {
    let mut trace = Trace::new().era(spec.era).backend(spec.backend).merge(spec.merge);
    if spec.merge == Merge::ArgsRank {
        return trace.events_only();
    }
    let flags = [
        ("record_shapes", spec.shapes),
        ("profile_memory", spec.memory),
        ("with_stack", spec.python),
        ("with_modules", spec.python),
    ];
    for (flag, _) in flags.into_iter().filter(|(_, on)| *on) {
        trace = trace.header(flag, 1);
    }
    if spec.world_size > 1 {
        let n = spec.world_size;
        let ranks: Vec<String> = (0..n).map(|rank| rank.to_string()).collect();
        trace = trace.header(
            "distributedInfo",
            Json::raw(format!(
                "{{\"backend\": \"nccl\", \"rank\": 0, \"world_size\": {n}, \"pg_count\": 1, \"pg_config\": \
                 [{{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": \"cuda:nccl\", \
                 \"pg_size\": {n}, \"ranks\": [{}]}}], \"nccl_version\": \"2.26.2\"}}",
                ranks.join(", ")
            )),
        );
    }
    trace.devices(i64::from(spec.devices))
}

pub(super) fn write<W: Write>(spec: &Spec, sink: &mut Sink<W>) -> io::Result<()> {
    let start = CAPTURE_START + 500_000;
    let mut workers: Vec<Worker> = (0..i64::from(spec.ranks))
        .map(|rank| Worker::new(spec, rank, start))
        .collect();
    let mut steps = 0;
    loop {
        if matches!(spec.size, Size::Steps(n) if steps == n) {
            break;
        }
        let before = sink.trace.element_count();
        for worker in &mut workers {
            let step = spec.first_step + steps;
            sink.emit(|t| worker.with_trace(t, |worker| worker.step(step)));
        }
        if let Size::Events(limit) = spec.size
            && sink.events() + closing_rows(spec) > limit
        {
            sink.trace.truncate_rows(before);
            break;
        }
        steps += 1;
        sink.flush_rows()?;
    }
    sink.counts.steps = steps;
    if let Size::Events(limit) = spec.size {
        let missing = limit.saturating_sub(sink.events() + closing_rows(spec));
        for worker in workers.iter_mut().take(1) {
            sink.emit(|t| {
                worker.with_trace(t, |worker| {
                    for _ in 0..missing {
                        worker.op(Thread::Main, &Op::new("aten::empty"), |_| {});
                    }
                })
            });
        }
    }
    for worker in &mut workers {
        sink.emit(|t| worker.with_trace(t, Worker::closing));
    }
    Ok(())
}

/// Metadata rows and window marks of all ranks. A limit below this number is exceeded.
fn closing_rows(spec: &Spec) -> u64 {
    let rows = Worker::new(spec, 0, 0)
        .with_trace(Trace::new(), Worker::closing)
        .element_count();
    as_u64(rows) * u64::from(spec.ranks)
}

impl Worker {
    fn step(&mut self, n: u32) {
        let main = Thread::Main;
        // The gap between step() and the next step.
        self.spend(main, 17_000, 30_000);
        self.annotation(main, &format!("ProfilerStep#{n}"), |w| {
            w.load(n);
            w.python("train.py(31): train_step", |w| {
                w.inputs_to_device();
                w.annotation(main, "Optimizer.zero_grad#AdamW.zero_grad", |w| {
                    w.spend(main, 9_000, 15_000)
                });
                w.forward();
                w.backward();
                w.optimizer();
                w.read_loss();
            });
        });
    }

    fn load(&mut self, step: u32) {
        let main = Thread::Main;
        let name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        let stall = self
            .spec
            .loader_stall
            .filter(|(at, _)| *at == step)
            .map_or(0, |(_, ns)| ns);
        self.annotation(main, name, |w| {
            w.python("torch/utils/data/dataloader.py(733): __next__", |w| {
                w.spend(main, 40_000 + stall, 60_000 + stall);
                w.op(main, &Op::new("aten::stack"), |w| {
                    w.op(main, &Op::new("aten::cat"), |w| w.spend(main, 20_000, 30_000));
                });
            });
        });
    }

    fn inputs_to_device(&mut self) {
        let main = Thread::Main;
        let input = [Input::tensor(&[TOKENS, HIDDEN], "c10::BFloat16")];
        self.op(main, &Op::new("aten::to").inputs(&input), |w| {
            w.op(main, &Op::new("aten::_to_copy").inputs(&input), |w| {
                w.op(main, &Op::new("aten::empty_strided"), |w| {
                    // The input buffer is reused by the allocator: freed at once, as far as totals go.
                    let address = w.allocate(main, ACTIVATION_BYTES, 0);
                    w.free(main, ACTIVATION_BYTES, address, 0);
                });
                w.op(main, &Op::new("aten::copy_").inputs(&input), |w| {
                    w.copy(main, true, ACTIVATION_BYTES);
                });
            });
        });
    }

    fn forward(&mut self) {
        let main = Thread::Main;
        let wrap = if self.spec.world_size > 1 {
            "DistributedDataParallel"
        } else {
            "Module"
        };
        self.module(wrap, 0, |w| {
            w.module("MLP", 0, |w| {
                for layer in 0..i64::from(w.spec.layers) {
                    w.layer_forward(layer);
                }
            });
        });
        if let Some(count) = self.spec.graph_kernels {
            self.python("torch/cuda/graphs.py(131): replay", |w| {
                w.graph(main, 0, count);
            });
        }
        self.op(main, &Op::new("aten::mse_loss"), |w| {
            let seq = w.forward_op("aten::mean");
            w.losses.push(seq);
        });
    }

    /// A forward op with one loss kernel; returns its sequence number and where it sits.
    fn forward_op(&mut self, name: &str) -> (i64, i64) {
        let main = Thread::Main;
        let seq = self.next_seq();
        let start = self.op(main, &Op::new(name).seq(seq, 0), |w| {
            let dur = w.rng.between(4_000, 6_000);
            w.elementwise(main, LOSS, 0, FIRST_STREAM, dur);
        });
        (seq, start)
    }

    fn layer_forward(&mut self, layer: i64) {
        let main = Thread::Main;
        let (device, stream) = self.place(layer);
        let x = Input::tensor(&[TOKENS, HIDDEN], "c10::BFloat16");
        let weight = Input::tensor(&[HIDDEN, HIDDEN], "c10::BFloat16");
        let bias = Input::tensor(&[HIDDEN], "c10::BFloat16");
        self.module("Linear", layer, |w| {
            w.python("torch/nn/modules/linear.py(125): forward", |w| {
                let linear = [x.clone(), weight.clone(), bias.clone()];
                w.op(main, &Op::new("aten::linear").inputs(&linear), |w| {
                    let t_inputs = std::slice::from_ref(&weight);
                    w.op(main, &Op::new("aten::t").inputs(t_inputs), |w| {
                        w.op(main, &Op::new("aten::transpose").inputs(t_inputs), |_| {});
                    });
                    let (seq, addmm) = (w.next_seq(), [bias, x.clone(), weight.clone()]);
                    let start = w.op(main, &Op::new("aten::addmm").inputs(&addmm).seq(seq, 0), |w| {
                        let address = w.allocate(main, ACTIVATION_BYTES, 0);
                        w.activations.push(address);
                        let dur = w.rng.between(24_000, 32_000);
                        w.gemm(main, device, stream, dur);
                    });
                    w.forwards.push((seq, start));
                });
            });
        });
        self.module("GELU", layer, |w| {
            w.python("torch/nn/modules/activation.py(734): forward", |w| {
                let (seq, gelu) = (w.next_seq(), [x, Input::scalar("none")]);
                let start = w.op(main, &Op::new("aten::gelu").inputs(&gelu).seq(seq, 0), |w| {
                    let dur = w.rng.between(7_000, 10_000);
                    w.elementwise(main, ELEMENTWISE, device, stream, dur);
                });
                w.forwards.push((seq, start));
            });
        });
    }

    fn backward(&mut self) {
        let main = Thread::Main;
        self.python("torch/_tensor.py(570): backward", |w| {
            w.python("torch/autograd/__init__.py(242): backward", |w| {
                w.spend(main, 9_000, 14_000);
                let start = w.now(main);
                w.wait_until(Thread::Backward, start);
                w.backward_thread();
                w.spend(Thread::Backward, 3_000, 6_000);
                let end = w.now(Thread::Backward);
                w.wait_until(main, end);
            });
        });
        for device in 0..i64::from(self.spec.devices) {
            if self.spec.world_size > 1 {
                self.call(main, "cudaStreamWaitEvent", 1_400);
                self.stream_waits(device, FIRST_STREAM, COMM_STREAM);
            }
        }
    }

    fn backward_thread(&mut self) {
        if let Some(loss) = self.losses.pop() {
            self.backward_node("MeanBackward0", loss, |w| {
                w.op(Thread::Backward, &Op::new("aten::expand"), |_| {});
            });
        }
        for layer in (0..i64::from(self.spec.layers)).rev() {
            let (device, stream) = self.place(layer);
            if let Some(forward) = self.forwards.pop() {
                self.backward_node("GeluBackward0", forward, |w| {
                    w.op(Thread::Backward, &Op::new("aten::gelu_backward"), |w| {
                        let dur = w.rng.between(9_000, 12_000);
                        w.elementwise(Thread::Backward, ELEMENTWISE_BACKWARD, device, stream, dur);
                    });
                });
            }
            if let Some(forward) = self.forwards.pop() {
                self.backward_node("AddmmBackward0", forward, |w| {
                    for _ in 0..2 {
                        w.op(Thread::Backward, &Op::new("aten::mm"), |w| {
                            let dur = w.rng.between(25_000, 34_000);
                            w.gemm(Thread::Backward, device, stream, dur);
                        });
                    }
                });
            }
            if let Some(address) = self.activations.pop() {
                self.free(Thread::Backward, ACTIVATION_BYTES, address, 0);
            }
            let accumulate = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
            self.op(Thread::Backward, &Op::new(accumulate), |w| {
                if layer % LAYERS_PER_BUCKET == 0 && w.spec.world_size > 1 {
                    w.reduce_bucket(device, (i64::from(w.spec.layers) - layer).min(LAYERS_PER_BUCKET));
                }
            });
        }
    }

    /// The two nested rows of an autograd node, linked to its forward op.
    fn backward_node(&mut self, name: &str, forward: (i64, i64), body: impl FnOnce(&mut Self)) {
        let thread = Thread::Backward;
        let (seq, forward_start) = forward;
        let outer = format!("autograd::engine::evaluate_function: {name}");
        self.op(thread, &Op::new(&outer).seq(seq, 1), |w| {
            let start = w.op(thread, &Op::new(name).seq(seq, 1), body);
            w.flow_id += 1;
            let (id, from, to) = (w.flow_id, w.tid(Thread::Main), w.tid(thread));
            w.emit(|t| t.fwdbwd(id, (from, forward_start), (to, start)));
        });
    }

    fn reduce_bucket(&mut self, device: i64, layers: i64) {
        let thread = Thread::Backward;
        let elements = layers * LAYER_PARAMETERS;
        self.collective_seq += 1;
        let collective = Collective::new(
            "allreduce",
            "BFloat16",
            elements,
            elements,
            i64::from(self.spec.world_size),
        )
        .rank(self.rank)
        .seq(self.collective_seq);
        let bucket = [Input::tensor(&[elements], "c10::BFloat16")];
        self.op(thread, &Op::new("c10d::allreduce_"), |w| {
            w.op(
                thread,
                &Op::new("record_param_comms")
                    .inputs(&bucket)
                    .collective(&collective),
                |w| {
                    w.annotation(thread, "nccl:all_reduce", |w| {
                        w.call(thread, "cudaStreamWaitEvent", 1_200);
                        w.all_reduce(thread, device, &collective, elements * 2);
                    });
                },
            );
        });
    }

    fn optimizer(&mut self) {
        let main = Thread::Main;
        self.annotation(main, "Optimizer.step#AdamW.step", |w| {
            w.python("torch/optim/adamw.py(243): step", |w| {
                for name in [
                    "aten::_foreach_lerp_",
                    "aten::_foreach_mul_",
                    "aten::_foreach_addcdiv_",
                ] {
                    w.op(main, &Op::new(name), |w| {
                        let dur = w.rng.between(14_000, 19_000);
                        w.elementwise(main, MULTI_TENSOR, 0, FIRST_STREAM, dur);
                    });
                }
            });
        });
    }

    fn read_loss(&mut self) {
        let main = Thread::Main;
        self.op(main, &Op::new("aten::item"), |w| {
            w.op(main, &Op::new("aten::_local_scalar_dense"), |w| {
                w.copy(main, false, 4);
                let (now, idle) = (w.now(main), w.device_idle_at());
                let wait = (idle - now).max(0) + w.rng.between(2_000, 4_000);
                w.call(main, "cudaStreamSynchronize", wait);
            });
        });
    }

    fn gemm(&mut self, thread: Thread, device: i64, stream: i64, dur: i64) {
        // hipBLASLt launches give the grid in work-items, everything else in blocks.
        let (name, api, grid, block) = match self.spec.backend {
            Backend::Cuda => (
                "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_\
                 segment_k_off_kernel__5x_cublas",
                "cudaLaunchKernel",
                [16, 8, 1],
                [384, 1, 1],
            ),
            Backend::Rocm => (
                "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x128x64_MI16x16x1_SN_LDSB1_WG32_4_1",
                "hipExtModuleLaunchKernel",
                [16 * 256, 8, 1],
                [256, 1, 1],
            ),
        };
        self.kernel(
            thread,
            &Kernel {
                name,
                api,
                device,
                stream,
                dur,
                grid,
                block,
            },
        );
    }

    fn elementwise(&mut self, thread: Thread, name: &str, device: i64, stream: i64, dur: i64) {
        let kernel = Kernel {
            name,
            api: "cudaLaunchKernel",
            device,
            stream,
            dur,
            grid: [2048, 1, 1],
            block: [128, 1, 1],
        };
        self.kernel(thread, &kernel);
    }

    /// The device and stream that a layer runs on: layers are split over devices and take turns on streams.
    fn place(&self, layer: i64) -> (i64, i64) {
        let (devices, streams) = (i64::from(self.spec.devices), i64::from(self.spec.streams));
        let device = layer * devices / i64::from(self.spec.layers).max(1);
        (device, compute_stream(layer % streams.max(1)))
    }

    fn next_seq(&mut self) -> i64 {
        self.seq += 1;
        self.seq
    }

    /// Metadata rows and window marks.
    fn closing(&mut self) {
        let (main, backward) = (self.tid(Thread::Main), self.tid(Thread::Backward));
        let end = self.now(Thread::Main).max(self.device_idle_at());
        let (rank, merge) = (self.rank, self.spec.merge);
        let (devices, streams) = (i64::from(self.spec.devices), i64::from(self.spec.streams));
        let agent = match self.spec.backend {
            Backend::Cuda => 0,
            Backend::Rocm => 2,
        };
        let (cpu_name, gpu_name) = match merge {
            Merge::ArgsRank => (format!("RANK {rank} - CPU"), format!("RANK {rank} - GPU")),
            _ => ("python3".to_owned(), "python3".to_owned()),
        };
        self.emit(|t| {
            let at = CAPTURE_START;
            let thread = |t: Trace, tid: i64, kind: &str| {
                let name = format!("thread {tid} ({kind})");
                t.metadata("thread_name", main, tid, at, "name", name.as_str())
            };
            let t = t
                .metadata("process_name", main, 0, at, "name", cpu_name.as_str())
                .metadata("process_labels", main, 0, at, "labels", "CPU");
            thread(thread(t, main, "python3"), backward, "pt_autograd_0")
                .each(0..devices, |t, device| {
                    let pid = device + agent;
                    t.metadata("process_name", pid, 0, at, "name", gpu_name.as_str())
                        .metadata(
                            "process_labels",
                            pid,
                            0,
                            0,
                            "labels",
                            format!("GPU {pid}").as_str(),
                        )
                        .each(
                            (0..streams).map(compute_stream).chain([COMM_STREAM]),
                            |t, stream| {
                                let name = format!("stream {stream} ");
                                t.metadata("thread_name", pid, stream, at, "name", name.as_str())
                            },
                        )
                })
                .window(CAPTURE_START, end + 2_000_000)
        });
    }
}

/// CUPTI numbers of the compute streams: 7, then 13 and up, clear of the communication stream.
fn compute_stream(index: i64) -> i64 {
    match index {
        0 => FIRST_STREAM,
        1..=7 => 12 + index,
        _ => 17 + index,
    }
}
