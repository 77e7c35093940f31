# The portal as one image: the whole of it in one container by default, one part of it with `serve --only web|worker|schedule`.
# docker-compose.yml uses it for every part; see docs/operations.md.

FROM node:22.20.0-bookworm-slim AS assets
WORKDIR /portal
COPY package.json package-lock.json esbuild.config.mjs ./
RUN npm ci --no-audit --no-fund --loglevel=error
COPY static/src static/src
RUN node esbuild.config.mjs

FROM python:3.11.14-slim-bookworm AS packages
COPY requirements.txt ./
RUN python -m venv /opt/portal \
    && /opt/portal/bin/python -m pip install --no-cache-dir --disable-pip-version-check -r requirements.txt

FROM python:3.11.14-slim-bookworm
ENV PATH=/opt/portal/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ORT_DISABLE_TELEMETRY=1 \
    OMP_NUM_THREADS=1 \
    KB_DATA_DIR=/data \
    KB_HOST=0.0.0.0 \
    KB_PORT=8000
RUN groupadd --gid 10001 portal \
    && useradd --uid 10001 --gid portal --home-dir /data --no-create-home --shell /usr/sbin/nologin portal \
    && install -d -o portal -g portal -m 0700 /data
WORKDIR /portal
COPY --from=packages /opt/portal /opt/portal
COPY LICENSE manage.py ./
COPY scripts/messages.py scripts/
COPY kbportal kbportal
COPY apps apps
COPY templates templates
COPY locale locale
COPY --from=assets /portal/static/dist static/dist
RUN python scripts/messages.py compile \
    && KB_DATA_DIR=/tmp/build KB_SECRET_KEY=used-only-to-collect-static-files python manage.py collectstatic --noinput --verbosity 0 \
    && python -m compileall -q kbportal apps \
    && rm -rf /tmp/build
USER portal
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=180s --retries=3 CMD ["python", "-m", "kbportal.healthcheck"]
CMD ["python", "manage.py", "serve", "--migrate"]
