# A function of this repository as a server in a container (docs/containers.md):
# docker build --build-arg FUNCTION=toolbox --platform linux/arm64 --tag toolbox .

# On the machine of the builder, for any platform.
FROM --platform=$BUILDPLATFORM rust:1.95-trixie AS build
RUN apt-get update && apt-get install --yes --no-install-recommends python3-pip \
  && pip install --break-system-packages --no-cache-dir cargo-lambda==1.9.2 ziglang==0.17.1
WORKDIR /project
COPY . .
# The package's only program, unless it is named.
ARG FUNCTION
# From --platform.
ARG TARGETARCH
RUN case "$TARGETARCH" in amd64) machine=--x86-64 ;; arm64) machine=--arm64 ;; *) exit 1 ;; esac \
  && cargo lambda build --release "$machine" ${FUNCTION:+--bin "$FUNCTION"} \
  && cp target/lambda/*/bootstrap /function

# glibc and root certificates; no shell.
FROM gcr.io/distroless/cc-debian13:nonroot
ARG FUNCTION
COPY functions/${FUNCTION}/THIRD-PARTY-LICENSES.txt /
COPY --from=build /function /function
ENV HOST=0.0.0.0 PORT=8000 LOG_FORMAT=json TOOLS_EXPLORER=no MALLOC_TRIM_THRESHOLD_=131072
EXPOSE 8000
# A number, by which Kubernetes sees that it is not root.
USER 65532:65532
ENTRYPOINT ["/function"]
