#!/usr/bin/env python3
"""A client that no line of Pagoda is part of: gRPC's own Python packages and stubs made from proto/.

Plans a pool with `pagoda plan`, starts a server on loopback with it and the model given, then: lists the services by reflection,
asks health, holds the model's figures to the plan's, streams a generation, cancels a stream, reads a rich error, drains the
server with SIGTERM.

    python_client.py --server build/dev/server/pagoda-server --pagoda build/dev/client/pagoda --model FILE.gguf
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status
from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"
START_SECONDS = 120
CALL_SECONDS = 120
# What is planned for: a test build fills its pool with poison, a small one starts at once.
SHAPE = ["--max-model-len", "2048", "--max-num-seqs", "4", "--kv-cache-dtype", "bf16"]


def make_stubs(folder):
    """Generates the Python stubs and puts them on the path."""
    arguments = ["protoc", f"-I{PROTO}", f"--python_out={folder}", f"--grpc_python_out={folder}"]
    well_known = pathlib.Path(protoc.__file__).parent / "_proto"
    # google.rpc and grpc.health.v1 come with the packages; ours are the same contracts.
    if protoc.main([*arguments, f"-I{well_known}", "pagoda/v1/inference.proto"]) != 0:
        raise SystemExit("python_client: protoc failed")
    sys.path.insert(0, str(folder))


def plan_memory(binary, model):
    """What `pagoda plan` says of the model in this shape."""
    said = subprocess.run([binary, "plan", model, "--json", "--memory", "4GiB", *SHAPE], check=True, capture_output=True).stdout
    return json.loads(said)


class Server:
    """pagoda-server on a free port, with the pool that was planned."""

    def __init__(self, binary, model, plan, folder):
        port_file = folder / "port"
        self.process = subprocess.Popen([binary, "--model", model, "--listen", "127.0.0.1:0", "--port-file", port_file,
                                         "--kv-cache-memory", str(plan["pool_bytes"]), *SHAPE])
        deadline = time.monotonic() + START_SECONDS
        while not (port_file.exists() and port_file.read_text(encoding="utf-8").strip()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("python_client: the server did not start")
            time.sleep(0.05)  # a pause between looks, not a wait for time: the loop ends on the file, the exit or the deadline
        self.target = f"127.0.0.1:{port_file.read_text(encoding='utf-8').strip()}"

    def drain(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=START_SECONDS)


def wait_serving(channel):
    from grpc_health.v1 import health_pb2, health_pb2_grpc  # pylint: disable=import-outside-toplevel
    stub = health_pb2_grpc.HealthStub(channel)
    for reply in stub.Watch(health_pb2.HealthCheckRequest(service="pagoda.v1.InferenceService"), timeout=START_SECONDS,
                            wait_for_ready=True):
        if reply.status == health_pb2.HealthCheckResponse.SERVING:
            return


def check_reflection(channel):
    services = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert "pagoda.v1.InferenceService" in services, services
    assert "grpc.health.v1.Health" in services, services
    return f"reflection lists {', '.join(sorted(services))}"


def check_plan(plan, model):
    said = {"weight_bytes": model.weight_bytes, "num_parameters": model.num_parameters, "weight_format": model.weight_format,
            "activation_dtype": model.activation_dtype, "kv_cache_dtype": model.kv_cache_dtype, "block_size": model.block_size,
            "kv_bytes_per_token": model.kv_bytes_per_token, "context": model.max_model_len, "pool_blocks": model.num_kv_blocks}
    planned = {key: plan[key] for key in said}
    assert planned == said, (planned, said)
    return f"the plan is the server's account: {plan['weight_bytes']} bytes of weights, {plan['pool_bytes']} of KV"


def check_generation(stub, pb):
    request = pb.GenerateRequest(text="Hello", sampling=pb.SamplingParameters(temperature=0),
                                 stop=pb.StopParameters(max_tokens=12, ignore_eos=True))
    first = list(stub.Generate(request, timeout=CALL_SECONDS))
    again = list(stub.Generate(request, timeout=CALL_SECONDS))
    ids = [i for message in first for delta in message.deltas for i in delta.token_ids]
    assert len(ids) == 12, ids
    assert ids == [i for message in again for delta in message.deltas for i in delta.token_ids]
    receipt = first[-1].finish.receipt
    assert receipt.generated_tokens == 12 and receipt.prompt_tokens >= 1, receipt
    assert first[-1].finish.choices[0].reason == pb.FINISH_REASON_LENGTH
    assert not any(message.HasField("finish") for message in first[:-1])
    detokenized = stub.Detokenize(pb.DetokenizeRequest(token_ids=ids), timeout=CALL_SECONDS).text
    streamed = "".join(delta.text for message in first for delta in message.deltas)
    assert streamed == detokenized, (streamed, detokenized)
    return f"streamed {len(first)} messages, 12 tokens, twice the same"


def check_cancel(stub, pb):
    request = pb.GenerateRequest(text="Count:", stop=pb.StopParameters(max_tokens=200, ignore_eos=True))
    call = stub.Generate(request, timeout=CALL_SECONDS)
    next(call)
    call.cancel()
    try:
        for _ in call:
            pass
        raise SystemExit("python_client: a cancelled stream ended as if nothing had happened")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.CANCELLED, error
    return "cancelled a stream after its first message"


def check_rich_error(stub, pb):
    from google.rpc import error_details_pb2  # pylint: disable=import-outside-toplevel
    request = pb.GenerateRequest(text="Hello", sampling=pb.SamplingParameters(top_p=1.5))
    try:
        list(stub.Generate(request, timeout=CALL_SECONDS))
        raise SystemExit("python_client: top_p 1.5 was taken")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
        status = rpc_status.from_call(error)
        bad = error_details_pb2.BadRequest()
        assert any(detail.Unpack(bad) for detail in status.details), status
        assert "top_p" in bad.field_violations[0].field, bad
    return f"rich error names the field: {bad.field_violations[0].description!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--pagoda", required=True)
    parser.add_argument("--model", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_stubs(folder)
        from pagoda.v1 import inference_pb2 as pb, inference_pb2_grpc  # pylint: disable=import-outside-toplevel
        plan = plan_memory(args.pagoda, args.model)
        server = Server(args.server, args.model, plan, folder)
        try:
            channel = grpc.insecure_channel(server.target)
            wait_serving(channel)
            stub = inference_pb2_grpc.InferenceServiceStub(channel)
            print(check_reflection(channel))
            model = stub.GetModel(pb.GetModelRequest(), timeout=CALL_SECONDS)
            assert stub.ListModels(pb.ListModelsRequest(), timeout=CALL_SECONDS).models[0] == model
            print(f"model {model.names[0]}: {model.architecture}, at most {model.max_model_len} tokens")
            print(check_plan(plan, model))
            print(check_generation(stub, pb))
            print(check_cancel(stub, pb))
            print(check_rich_error(stub, pb))
            channel.close()
            code = server.drain()
            assert code == 0, f"exit code {code} after SIGTERM"
            print("drained on SIGTERM, exit code 0")
        finally:
            server.process.kill()
            server.process.wait()
    print("python_client: all passed")


if __name__ == "__main__":
    main()
