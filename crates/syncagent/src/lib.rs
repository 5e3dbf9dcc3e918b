//! The api-syncagent: publishes CRDs into kcp and carries consumers' objects to a service cluster and back.
