//! What can be wrong with a schema.

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is not what it should be.
    #[error("it is not a {what}: {problem}")]
    Shape {
        /// What it should be.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// No CRD can be made of a resource of the core group.
    #[error("{0} is in the core group, which CustomResourceDefinitions cannot extend")]
    CoreGroup(String),
    /// The name says something else than the content.
    #[error("it is called {name} and describes {content}")]
    OtherName {
        /// Its name.
        name: String,
        /// What its content stands for.
        content: String,
    },
    /// No version is served.
    #[error("no version of {0} is served; the provider must serve one")]
    NothingServed(String),
    /// There must be one storage version.
    #[error("{name} has {count} storage versions instead of one")]
    StorageVersions {
        /// Which schema.
        name: String,
        /// How many.
        count: usize,
    },
    /// A version has no schema.
    #[error("version {version} of {name} has no schema")]
    NoSchema {
        /// Which schema.
        name: String,
        /// Which version.
        version: String,
    },
    /// A version is there twice.
    #[error("version {version} of {name} is listed twice")]
    Duplicate {
        /// Which schema.
        name: String,
        /// Which version.
        version: String,
    },
}
