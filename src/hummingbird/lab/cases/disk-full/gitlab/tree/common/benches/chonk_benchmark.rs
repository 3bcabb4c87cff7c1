use criterion::{criterion_group, criterion_main, Criterion};
use veloren_common::terrain::chonk::Chonk;

fn fill(c: &mut Criterion) {
    c.bench_function("fill a chunk", |b| b.iter(|| Chonk::empty().defragment()));
}

fn iterate(c: &mut Criterion) {
    let chunk = Chonk::empty();
    c.bench_function("walk through a chunk", |b| b.iter(|| chunk.iter().count()));
}

criterion_group!(benches, fill, iterate);
criterion_main!(benches);
