#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opsets that changed each operator of ai.onnx, a line an operator.

Writes tests/network/import/schema_history.txt, which
tests/network/import/upgrades/upgrade.c holds the importer's upgrades to. Needs the Python package onnx:
    scripts/onnx_history.py > tests/network/import/schema_history.txt
"""
import collections

import onnx
import onnx.defs

history = collections.defaultdict(set)
for schema in onnx.defs.get_all_schemas_with_history():
    if schema.domain == "":
        history[schema.name].add(schema.since_version)

print(f"# onnx {onnx.__version__}, opset {onnx.defs.onnx_opset_version()}; "
      "made by scripts/onnx_history.py")
for op in sorted(history):
    print(op, *sorted(history[op]))
