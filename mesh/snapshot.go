package mesh
