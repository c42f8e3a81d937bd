# Carrick with all its services: docker build --tag carrick:0.1.0 .
#
# The first stage builds the wheel with its web pages and installs it with the pinned dependencies; the second has the
# result and nothing to build with. It runs as a user without a name or a shell, and needs to write to /var/lib/carrick
# only, and there only with SQLite.

FROM python:3.13.9-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
RUN make dist
RUN python -m venv --without-pip /opt/carrick \
 && pip --python /opt/carrick/bin/python install --no-cache-dir --require-hashes --no-deps --only-binary :all: \
      --requirement requirements-run.lock \
 && pip --python /opt/carrick/bin/python install --no-cache-dir --no-index --no-deps dist/carrick-*.whl

FROM python:3.13.9-slim-bookworm
COPY --from=build /opt/carrick /opt/carrick
RUN install --directory --owner 10001 --group 10001 /var/lib/carrick
ENV PATH=/opt/carrick/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    HOST=0.0.0.0
WORKDIR /var/lib/carrick
VOLUME /var/lib/carrick
USER 10001:10001
# PORT and METRICS_PORT where they are not set; `carrick ingest` has 8081 and 9091.
EXPOSE 8080 9090
# Of those that serve HTTP. `carrick drain` does not: turn it off there.
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request as web; web.urlopen('http://127.0.0.1:' + os.environ.get('PORT', '8080') + '/api/health', timeout=4)"]
ENTRYPOINT ["carrick"]
CMD ["--help"]
