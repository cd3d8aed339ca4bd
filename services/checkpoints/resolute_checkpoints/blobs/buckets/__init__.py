"""Object stores.

Clients of S3, Google Cloud Storage and Azure behind one protocol, the store of checkpoints on top of them,
their errors, multipart uploads, and the addresses to which connections may lead.
"""
