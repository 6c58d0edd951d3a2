# Roster alone, on nothing: for servers that are reached by URL. Servers that are
# commands need a base that has their programs, see docs/recipes.md.
#
#   docker build -t roster .
#   docker run -p 127.0.0.1:7678:7678 -v ./config.json:/etc/roster/config.json:ro -v roster-state:/var/lib/roster roster

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags='-s -w -buildid=' -o /out/usr/local/bin/roster ./cmd/roster \
	&& mkdir -p /out/etc/ssl/certs /out/etc/roster /out/var/lib/roster /out/tmp \
	&& cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
	&& chmod 1777 /out/tmp && chown 65532:65532 /out/var/lib/roster

FROM scratch
COPY --from=build /out/ /
USER 65532:65532
ENV HOME=/var/lib/roster ROSTER_STATE_DIR=/var/lib/roster
VOLUME /var/lib/roster
EXPOSE 7678
# The configuration must have keys, since the gateway is reached from outside of
# the container.
ENTRYPOINT ["/usr/local/bin/roster"]
CMD ["serve", "--config", "/etc/roster/config.json", "--listen", "0.0.0.0:7678"]
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s \
	CMD ["/usr/local/bin/roster", "wait", "--config", "/etc/roster/config.json", "--timeout", "5s"]
