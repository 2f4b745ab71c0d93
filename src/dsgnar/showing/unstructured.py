"""Unstructured grids for ParaView (.vtu): a mesh of a shape and values at its nodes."""

import base64
from collections.abc import Mapping

import numpy as np

from dsgnar.problem.meshing import Mesh

CELLS = {2: 5, 3: 10}  # VTK's numbers of triangle and tetrahedron


def unstructured(found: Mesh, values: Mapping[str, np.ndarray]) -> bytes:
    """The file: nodes, simplices, and values at the nodes, (n,) or (n, 3)."""
    count, size = found.simplices.shape
    nodes = np.zeros((len(found.nodes), 3))
    nodes[:, : found.nodes.shape[1]] = found.nodes
    cells = {
        "connectivity": found.simplices.ravel().astype("<i8"),
        "offsets": np.arange(size, size * (count + 1), size, dtype="<i8"),
        "types": np.full(count, CELLS[size - 1], "u1"),
    }
    body = f'<UnstructuredGrid><Piece NumberOfPoints="{len(nodes)}" NumberOfCells="{count}">'
    body += f"<PointData>{''.join(_array(name, v) for name, v in values.items())}</PointData>"
    body += f"<Points>{_array('points', nodes)}</Points>"
    body += f"<Cells>{''.join(_array(name, v) for name, v in cells.items())}</Cells></Piece></UnstructuredGrid>"
    attributes = 'type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64"'
    return f'<?xml version="1.0"?>\n<VTKFile {attributes}>{body}</VTKFile>\n'.encode()


def _array(name: str, values: np.ndarray) -> str:
    kinds = {"f4": "Float32", "i8": "Int64", "u1": "UInt8"}
    kind = kinds.get(values.dtype.str[1:], "Float64")
    payload = (values.astype("<f8") if kind == "Float64" else values).tobytes()
    text = base64.b64encode(len(payload).to_bytes(8, "little") + payload).decode()
    components = values.shape[1] if values.ndim == 2 else 1
    return f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{components}" format="binary">{text}</DataArray>'
