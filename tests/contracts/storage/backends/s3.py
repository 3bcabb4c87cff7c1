"""S3 as ministack serves it."""

from itertools import count

import boto3.session

from tests.contracts.queues.backends.ministack import REGION, Ministack

_NUMBERS = count(1)


class S3Buckets:
    def __init__(self, ministack: Ministack) -> None:
        self._endpoint = ministack.endpoint

    def address(self) -> str:
        """Of a new, empty place in a bucket."""
        bucket = f"bucket-{next(_NUMBERS)}"
        client = boto3.session.Session(region_name=REGION).client("s3", endpoint_url=self._endpoint)
        client.create_bucket(Bucket=bucket)
        client.close()
        return f"s3://{bucket}/some/place"

    def nowhere(self) -> str:
        return "s3://no-such-bucket/some/place"
