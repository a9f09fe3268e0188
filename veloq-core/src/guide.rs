//! Guides: what a source knows of its own use, for people and for agents.

/// A step of a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecipeStep {
    /// The arguments after `veloq`. `TRACE` stands for a trace, `ROW_ID` for a row id that the step before
    /// answered.
    pub command: &'static str,
    /// How to read the answer, and what to do next.
    pub read: &'static str,
}

/// A named way to answer a question that takes more than one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// The name on the command line; unique among all sources.
    pub id: &'static str,
    /// The question it answers, in one line.
    pub question: &'static str,
    /// The commands, in the order in which they are asked.
    pub steps: &'static [RecipeStep],
}

/// Instructions for a coding agent, as a file of Markdown with a front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skill {
    /// The name: that of the folder it is installed in.
    pub name: &'static str,
    /// The text of its `SKILL.md`.
    pub text: &'static str,
}
