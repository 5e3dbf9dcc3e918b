# The agent's image: nothing but the program.
#
#   cargo xtask release --target x86_64-unknown-linux-musl --out dist/amd64
#   cargo xtask release --target aarch64-unknown-linux-musl --out dist/arm64
#
# `cargo xtask release --image` builds and starts it with buildah. For a registry:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --tag <registry>/api-syncagent:<version> .
# The base has no public certificate authorities. If kubeconfigs rely on those: --build-arg BASE=<a distroless static image>.
ARG BASE=scratch
FROM ${BASE}
ARG TARGETARCH
COPY dist/${TARGETARCH}/api-syncagent /api-syncagent
# nobody; the root may be read-only, nothing is written.
USER 65534:65534
ENTRYPOINT ["/api-syncagent"]
