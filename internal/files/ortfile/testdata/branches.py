import onnx, numpy as np
from onnx import helper as h, TensorProto as T, numpy_helper as nh
def branch(k, name):
    return h.make_graph([
        h.make_node('Cast',['q'],['f'+name],to=T.FLOAT),
        h.make_node('Mul',['f'+name,'scale'],['w'+name]),
        h.make_node('MatMul',['x','w'+name],['m'+name], name='/a/'+name),
        h.make_node('Softmax',['m'+name],['s'+name],axis=-1,name='/block/Softmax'),
        h.make_node('Add',['s'+name,'k'+name],['y'+name]),
    ], name, [], [h.make_tensor_value_info('y'+name,T.FLOAT,['N',2])], [nh.from_array(np.array([k],np.float32),'k'+name)])
g=h.make_graph([h.make_node('If',['pick'],['y'],then_branch=branch(10,'t'),else_branch=branch(20,'e'))],'g',
  [h.make_tensor_value_info('pick',T.BOOL,[1]),h.make_tensor_value_info('x',T.FLOAT,['N',3])],[h.make_tensor_value_info('y',T.FLOAT,['N',2])],
  [nh.from_array(np.array([[1,2],[3,4],[5,6]],np.uint8),'q'),nh.from_array(np.array([.5],np.float32),'scale')])
m=h.make_model(g,opset_imports=[h.make_opsetid('',13)]); m.ir_version=8
p=m.metadata_props.add(); p.key='model_type'; p.value='made_up'
onnx.checker.check_model(m); onnx.save(m,'branches.onnx')
import onnxruntime as o
so=o.SessionOptions(); so.graph_optimization_level=o.GraphOptimizationLevel.ORT_DISABLE_ALL
so.optimized_model_filepath='branches.ort'; so.add_session_config_entry('session.save_model_format','ORT')
o.InferenceSession('branches.onnx',so)
