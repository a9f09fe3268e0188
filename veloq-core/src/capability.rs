//! What a trace can answer.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// Whether a trace holds one kind of information, and if not, how to record it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// Whether questions that need it can be answered.
    pub available: bool,
    /// How many rows carry it.
    pub count: u64,
    /// What is missing and how to record it; null when available.
    pub reason: Option<String>,
}

/// Capabilities by id, in the fixed order in which a source states them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities(Vec<(Cow<'static, str>, Capability)>);

impl Capabilities {
    /// Adds a capability behind those already stated.
    pub fn push(&mut self, id: impl Into<Cow<'static, str>>, capability: Capability) {
        self.0.push((id.into(), capability));
    }

    /// Returns the capability of that id.
    pub fn get(&self, id: &str) -> Option<&Capability> {
        self.iter()
            .find(|(known, _)| *known == id)
            .map(|(_, capability)| capability)
    }

    /// Returns all capabilities in their stated order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Capability)> {
        self.0.iter().map(|(id, capability)| (id.as_ref(), capability))
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (id, capability) in &self.0 {
            map.serialize_entry(id.as_ref(), capability)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> serde::de::Visitor<'de> for InOrder {
            type Value = Capabilities;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a map of capabilities")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut capabilities = Capabilities::default();
                while let Some((id, capability)) = map.next_entry::<String, Capability>()? {
                    capabilities.push(id, capability);
                }
                Ok(capabilities)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl JsonSchema for Capabilities {
    fn schema_name() -> Cow<'static, str> {
        "Capabilities".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let capability = generator.subschema_for::<Capability>();
        json_schema!({
            "description": "Capabilities by id, in a fixed order.",
            "type": "object",
            "additionalProperties": capability,
        })
    }
}
