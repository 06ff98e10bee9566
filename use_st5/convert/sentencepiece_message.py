"""The message that a SentencePiece model file holds, as far as a rebuilt model needs it.

The module that the package sentencepiece generates of it (0.2.3) refuses the protobuf 6 that
TensorFlow 2.20 and Apache Beam bring.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "use_st5.sentencepiece"
_Field = descriptor_pb2.FieldDescriptorProto
# Name → number and type, of sentencepiece_model.proto; an enum is written as an int32 is.
_MESSAGES: dict[str, dict[str, tuple[int, Any]]] = {
    "SentencePiece": {
        "piece": (1, _Field.TYPE_STRING),
        "score": (2, _Field.TYPE_FLOAT),
        "type": (3, _Field.TYPE_INT32),
    },
    "TrainerSpec": {
        "model_type": (3, _Field.TYPE_INT32),
        "vocab_size": (4, _Field.TYPE_INT32),
        "byte_fallback": (35, _Field.TYPE_BOOL),
        "unk_id": (40, _Field.TYPE_INT32),
        "bos_id": (41, _Field.TYPE_INT32),
        "eos_id": (42, _Field.TYPE_INT32),
        "pad_id": (43, _Field.TYPE_INT32),
        "eos_piece": (47, _Field.TYPE_STRING),
        "pad_piece": (48, _Field.TYPE_STRING),
    },
    "NormalizerSpec": {
        "name": (1, _Field.TYPE_STRING),
        "precompiled_charsmap": (2, _Field.TYPE_BYTES),
    },
    "ModelProto": {
        "pieces": (1, "SentencePiece"),
        "trainer_spec": (2, "TrainerSpec"),
        "normalizer_spec": (3, "NormalizerSpec"),
    },
}


def model_proto() -> Any:
    """An empty `ModelProto`."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE)
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            several = name == "pieces"
            label = _Field.LABEL_REPEATED if several else _Field.LABEL_OPTIONAL
            field = described.field.add(name=name, number=number, label=label)
            if isinstance(kind, str):
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName(f"{_PACKAGE}.ModelProto")
    return message_factory.GetMessageClass(found)()
