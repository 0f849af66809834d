"""How a gate's settings become connections: certificates, keys and proxies."""
