// A server of connect-node that plays answers from a file: `node connect_server.mjs PACKAGES FILE SET`.
// SET is a file with a FileDescriptorSet. The first segment of a call's path is the name of its answer. One port speaks
// HTTP/1.1 (Connect, gRPC-Web), the other one HTTP/2 (gRPC).
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import { createRequire } from "node:module";

const [packages, file, set] = process.argv.slice(2);
const require = createRequire(`${packages}/package.json`);
const { createFileRegistry, fromBinary, toBinary } = require("@bufbuild/protobuf");
const { AnySchema, FileDescriptorSetSchema } = require("@bufbuild/protobuf/wkt");
const { ConnectError } = require("@connectrpc/connect");
const { connectNodeAdapter } = require("@connectrpc/connect-node");

const report = (fields) => process.stdout.write(`${JSON.stringify(fields)}\n`);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(set)));
const services = [...registry].filter((described) => described.kind === "service");

const left = (name, signal) =>
  new Promise((_, reject) => {
    signal.addEventListener("abort", () => {
      report({ event: "left", answer: name });
      reject(new ConnectError("the client left", 1));
    });
  });

async function* play(name, answer, method, request, context) {
  const message = Buffer.from(toBinary(method.input, request)).toString("base64");
  const timeout_s = context.timeoutMs() === undefined ? null : context.timeoutMs() / 1000;
  report({ event: "request", answer: name, headers: Object.fromEntries(context.requestHeader), message, timeout_s });
  for (const encoded of answer.messages) yield fromBinary(method.output, Buffer.from(encoded, "base64"));
  if (answer.held) await left(name, context.signal);
  for (const [key, value] of Object.entries(answer.trailers)) context.responseTrailer.set(key, value);
  if (!answer.status) return;
  const error = new ConnectError(answer.text, answer.status);
  if (answer.detail) {
    const { typeUrl, value } = fromBinary(AnySchema, Buffer.from(answer.detail, "base64"));
    error.details.push({ type: typeUrl.split("/")[1], value });
  }
  throw error;
}

const methods = (service, name, answer) =>
  Object.fromEntries(
    service.methods.map((method) => [
      method.localName,
      method.methodKind === "unary"
        ? async (request, context) => {
            let last;
            for await (const message of play(name, answer, method, request, context)) last = message;
            return last ?? fromBinary(method.output, new Uint8Array());
          }
        : (request, context) => play(name, answer, method, request, context),
    ]),
  );

const handlers = new Map(
  Object.entries(JSON.parse(readFileSync(file))).map(([name, answer]) => [
    name,
    connectNodeAdapter({
      requestPathPrefix: `/${name}`,
      routes: (router) => services.forEach((service) => router.service(service, methods(service, name, answer))),
    }),
  ]),
);
const handle = (request, response) => handlers.get(request.url.split("/")[1])(request, response);
const listening = (server) =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));

const [port, http2Port] = await Promise.all([
  listening(http.createServer(handle)),
  listening(http2.createServer(handle)),
]);
report({ event: "ready", port, http2_port: http2Port });
