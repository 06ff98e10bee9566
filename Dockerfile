# A server of the bundled models: docker build -t use_st5 . && docker run -p 8000:8000 use_st5
FROM python:3.12-slim
WORKDIR /use_st5
COPY . .
RUN pip install --no-cache-dir ".[serve,text]"
RUN useradd --create-home server
USER server
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8000/healthz')"]
ENTRYPOINT ["use-st5", "serve"]
CMD ["use_dan_en", "use_transformer_en", "--host", "0.0.0.0"]
