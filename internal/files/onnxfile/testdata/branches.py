"""Writes branches.onnx and branches.ort: 8-bit weights in two branches. Needs onnx, numpy and onnxruntime."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def branch(k, name):
    nodes = [
        helper.make_node("Cast", ["q"], ["f" + name], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f" + name, "scale"], ["w" + name]),
        helper.make_node("MatMul", ["x", "w" + name], ["m" + name], name="/a/" + name),
        helper.make_node("Softmax", ["m" + name], ["s" + name], axis=-1, name="/block/Softmax"),
        helper.make_node("Add", ["s" + name, "k" + name], ["y" + name]),
    ]
    outputs = [helper.make_tensor_value_info("y" + name, TensorProto.FLOAT, ["N", 2])]
    return helper.make_graph(nodes, name, [], outputs, [numpy_helper.from_array(np.array([k], np.float32), "k" + name)])


graph = helper.make_graph(
    [helper.make_node("If", ["pick"], ["y"], then_branch=branch(10, "t"), else_branch=branch(20, "e"))],
    "g",
    [
        helper.make_tensor_value_info("pick", TensorProto.BOOL, [1]),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3]),
    ],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
    [
        numpy_helper.from_array(np.array([[1, 2], [3, 4], [5, 6]], np.uint8), "q"),
        numpy_helper.from_array(np.array([0.5], np.float32), "scale"),
    ],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
model.ir_version = 8
entry = model.metadata_props.add()
entry.key, entry.value = "model_type", "made_up"
onnx.checker.check_model(model)
onnx.save(model, "branches.onnx")

options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
options.optimized_model_filepath = "branches.ort"
options.add_session_config_entry("session.save_model_format", "ORT")
onnxruntime.InferenceSession("branches.onnx", options)
