# Images: nothing but a program each.
#
#   cargo xtask release --target x86_64-unknown-linux-musl --out dist/amd64
#   cargo xtask release --target aarch64-unknown-linux-musl --out dist/arm64
#
# `cargo xtask release --image` builds and starts them with buildah. For a registry, and for each of api-syncagent, konnector, kube-bind-backend and carrick:
#
#   docker buildx build --platform linux/amd64,linux/arm64 --target <program> --tag <registry>/<program>:<version> .
# The base has no public certificate authorities. If kubeconfigs or an OIDC issuer rely on those: --build-arg BASE=<a distroless static image>.
ARG BASE=scratch

FROM ${BASE} AS konnector
ARG TARGETARCH
COPY dist/${TARGETARCH}/konnector /konnector
# nobody; the root may be read-only, nothing is written.
USER 65534:65534
ENTRYPOINT ["/konnector"]

FROM ${BASE} AS kube-bind-backend
ARG TARGETARCH
COPY dist/${TARGETARCH}/kube-bind-backend /kube-bind-backend
USER 65534:65534
ENTRYPOINT ["/kube-bind-backend"]

# For `helm test`, which runs `carrick doctor` where the agent runs.
FROM ${BASE} AS carrick
ARG TARGETARCH
COPY dist/${TARGETARCH}/carrick /carrick
USER 65534:65534
ENTRYPOINT ["/carrick"]

# Last, so that it is the one that is built if none is named.
FROM ${BASE} AS api-syncagent
ARG TARGETARCH
COPY dist/${TARGETARCH}/api-syncagent /api-syncagent
USER 65534:65534
ENTRYPOINT ["/api-syncagent"]
