"""The cluster engine: first its parts, which need no Ray; then a real cluster of four nodes on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import acceptability
from acceptability import Sentence, Suite, evaluate, load_model, score
from acceptability.engine import Local, load_engine, ray
from acceptability.engine import ray as ray_engine
from acceptability.engine.ray import (
    Ray,
    _cut_slices,
    _deduplicate_answers,
    _find_root_cause,
    _ModelWorker,
    _plan_workers,
    _QuerySlice,
    _SliceAnswer,
)
from acceptability.errors import EngineError, MissingExtra, ModelError, QueryError, SpecError, UnknownName
from acceptability.store.scores import ScoreStore
from acceptability.types import Query
from tiny import SENTENCES

needs_ray = pytest.mark.skipif(not ray.is_importable("ray"), reason="ray is not installed: make install")
COUNT = 8000


def suite(count: int = COUNT) -> Suite:
    """Distinct sentences of many lengths."""
    words = " ".join(SENTENCES).replace(".", "").split()
    texts = [" ".join([*(words[(i * 7 + k) % 41] for k in range(1 + i % 9)), str(i)]) for i in range(count)]
    return Suite("many", tuple(Sentence(str(i), text) for i, text in enumerate(texts)))


class TestParts:
    def test_engines_have_specs(self) -> None:
        assert load_engine("local") == Local()
        with pytest.raises(UnknownName, match="no engine named 'dask'.*The engines are: local, ray"):
            score("starter", "uniform", engine="dask")

    def test_a_missing_ray_is_named(self, monkeypatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(MissingExtra, match=r"'--engine ray' needs ray.*acceptability\[cluster\]"):
            load_engine("ray")

    def test_options_are_checked(self, monkeypatch) -> None:
        monkeypatch.setattr(ray_engine, "is_importable", lambda _: True)
        assert load_engine("ray(address='head:6379', workers=3)") == Ray("head:6379", 3)
        for workers in ("0", "True", "'two'"):
            with pytest.raises(SpecError, match="whole number above 0"):
                load_engine(f"ray(workers={workers})")
        with pytest.raises(SpecError, match="write HOST:PORT, auto or local"):
            Ray("head")
        with pytest.raises(SpecError, match="on a node of the cluster"):
            Ray("ray://head:10001")

    def test_a_model_without_a_name_cannot_be_sent(self, monkeypatch) -> None:
        monkeypatch.setattr(ray_engine, "is_importable", lambda _: True)
        with pytest.raises(EngineError, match="was given as an object"):
            score("starter", load_model("uniform"), engine=Ray())

    def test_slices_are_the_same_when_some_queries_are_known(self, monkeypatch) -> None:
        monkeypatch.setattr(ray_engine, "SLICE", 3)
        queries = [Query("a" * size) for size in (1, 5, 2, 9, 7, 3, 8)]
        slices = _cut_slices(queries, range(7), lambda _: False)
        assert [query_slice.indices for query_slice in slices] == [(3, 6, 4), (1, 5, 2), (0,)]
        again = _cut_slices(queries, range(7), lambda index: index in (0, 5))
        assert [query_slice.indices for query_slice in again] == [(3, 6, 4), (1, 5, 2)]
        assert [query_slice.known_positions for query_slice in again] == [frozenset(), frozenset({1})]

    def test_a_worker_scores_what_is_not_known(self) -> None:
        worker = _ModelWorker("uniform", load_model("uniform").signature)
        asked = _QuerySlice((5, 9, 7), (Query("A b."), Query("C."), Query("D e f.")), frozenset({1}))
        answer = worker({"item": asked})["item"]
        assert {index: output.text for index, output in answer.scores} == {5: "A b.", 7: "D e f."}

    def test_the_error_of_a_worker_is_an_answer(self, arpa: Path) -> None:
        odd = _QuerySlice((5, 9), (Query("The cats sleep."), Query("qwx zzx")), frozenset())
        name = f"ngram:{arpa}"
        answer = _ModelWorker(name, load_model(name).signature)({"item": odd})["item"]
        assert (answer.failed_index, answer.scores) == (9, ())
        with pytest.raises(QueryError, match="knows none of its words") as caught:
            list(_deduplicate_answers(iter([answer]), [odd]))
        assert caught.value.index == 9
        for spec, problem in (("uniform", "is another model there"), ("ngram:nowhere.arpa", "nowhere.arpa")):
            answer = _ModelWorker(spec, "another")({"item": odd})["item"]
            with pytest.raises(ModelError, match=f"on the node {socket.gethostname()}: .*{problem}"):
                list(_deduplicate_answers(iter([answer]), [odd]))

    def test_a_node_with_another_class_of_device_stops_the_run(self, causal_dir: Path) -> None:
        """In half precision, its outputs would be stored as those of the device of this machine."""
        asked = _QuerySlice((5,), (Query("The cats sleep."),), frozenset())
        spec = f"causal:{causal_dir}(dtype='bfloat16')"
        signature = load_model(spec).signature
        answer = _ModelWorker(spec, signature, "cuda")({"item": asked})["item"]
        assert "computes on cpu there, and on cuda here" in answer.problem
        assert "Add device='cpu' to the spec" in answer.problem
        assert _ModelWorker(spec, signature, "cpu")({"item": asked})["item"].scores

    def test_duplicate_answers_are_dropped_and_missing_ones_are_an_error(self) -> None:
        outputs = load_model("uniform").run(load_model("uniform").encode([Query("A."), Query("B.")]))
        asked = [_QuerySlice((0, 1), (Query("A."), Query("B.")), frozenset())]
        whole = _SliceAnswer(((0, outputs[0]), (1, outputs[1])))
        assert list(_deduplicate_answers(iter([whole, whole]), asked)) == [list(whole.scores)]
        with pytest.raises(EngineError, match="returned no output for 1 queries"):
            list(_deduplicate_answers(iter([_SliceAnswer(whole.scores[:1])]), asked))

    def test_the_root_cause_of_a_wrapped_error(self) -> None:
        first, second, third = ValueError("a bug"), RuntimeError("wrapped"), RuntimeError("again")
        second.__cause__ = first
        third.cause = second
        assert _find_root_cause(third) is first
        first.__cause__ = RuntimeError()
        assert _find_root_cause(first) is first

    def test_the_resources_that_a_worker_reserves(self) -> None:
        nodes = [{"Alive": True, "Resources": {"CPU": 4.0}}] * 3
        assert _plan_workers(nodes, 6) == (6, {"num_cpus": 2})
        assert _plan_workers([*nodes, {"Alive": False, "Resources": {"GPU": 8.0}}], 2) == (2, {"num_cpus": 4})
        with pytest.raises(EngineError, match="neither GPUs nor CPUs"):
            _plan_workers([{"Alive": True, "Resources": {}}], None)


@needs_ray
def test_an_address_without_a_cluster_is_named() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(EngineError, match=f"no Ray cluster answers at {address}"):
            score("starter", "uniform", engine=Ray(address))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A head that only coordinates, and three nodes with a CPU each."""
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 100 * 1024 * 1024, "include_dashboard": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(acceptability.__file__).parents[1]))
        patch.setenv("ACCEPTABILITY_HOME", str(tmp_path_factory.mktemp("nodes")))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        started = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
        try:
            workers = [started.add_node(num_cpus=1, **small) for _ in range(3)]
            yield SimpleNamespace(cluster=started, workers=workers, address=started.address)
        finally:
            started.shutdown()


def command(home: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-m", "acceptability", *arguments], {**os.environ, "ACCEPTABILITY_HOME": str(home)}


def stored() -> int:
    with ScoreStore() as store:
        return sum(store.count_answers().values())


class Counting:
    """An engine that counts the answers of each query."""

    def __init__(self, engine: Ray) -> None:
        self.engine = engine
        self.counts: Counter[int] = Counter()

    def answers(self, *asked):
        for batch in self.engine.answers(*asked):
            self.counts.update(index for index, _ in batch)
            yield batch


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")
class TestCluster:
    def test_stdout_is_data_and_errors_are_one_line(
        self, nodes: SimpleNamespace, own_home: Path, tmp_path: Path, causal_dir: Path
    ) -> None:
        at = ("--engine", "ray", "--address", nodes.address)
        line, env = command(own_home, "evaluate", "starter", "-m", "uniform", "--json", *at)
        there = subprocess.run(line, env=env, capture_output=True, text=True)
        assert there.returncode == 0, there.stderr
        line, env = command(tmp_path, *line[3:-4])
        here = subprocess.run(line, env=env, capture_output=True, text=True, check=True)
        assert there.stdout == here.stdout
        assert "ray" not in there.stderr.lower()
        (tmp_path / "long.csv").write_text("id,text\nx8,The cats sleep.\nx9,{}\n".format("cats " * 99))
        line, env = command(own_home, "score", str(tmp_path / "long.csv"), f"causal:{causal_dir}", *at)
        done = subprocess.run(line, env=env, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (1, "")
        assert "cannot score sentence 'x9'" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr

    def test_a_killed_driver_resumes_where_it_stopped(
        self, nodes: SimpleNamespace, own_home: Path, tmp_path: Path, causal_dir: Path
    ) -> None:
        many, model = suite(), f"causal:{causal_dir}"
        path = tmp_path / "many.tsv"
        path.write_text("id\ttext\n" + "".join(f"{each.id}\t{each.text}\n" for each in many.sentences))
        line, env = command(own_home, "score", str(path), model, "--engine", "ray", "--address", nodes.address)
        with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while process.poll() is None and not stored():
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        before = stored()
        assert 0 < before < COUNT, "the kill must leave something done and something to do"
        engine = Counting(Ray(nodes.address))
        scores = score(many, model, engine=engine)
        assert len(engine.counts) == COUNT - before
        assert set(engine.counts.values()) == {1}
        assert stored() == len(scores.values) == COUNT

    def test_a_connection_of_the_callers_is_used_and_kept(self, nodes: SimpleNamespace, arpa: Path) -> None:
        import ray

        ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
        try:
            with pytest.raises(EngineError, match="connected to .* already"):
                score("starter", "uniform", engine=Ray("127.0.0.1:1"))
            (there,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"], engine="ray(workers=1)")
            with pytest.raises(ModelError, match="cannot score sentence 'odd'"):
                score(Suite("s", (Sentence("odd", "qwx zzx"),)), f"ngram:{arpa}", engine="ray")
            assert ray.is_initialized()
            deadline = time.monotonic() + 300
            while ray.available_resources().get("CPU") != ray.cluster_resources()["CPU"]:
                assert time.monotonic() < deadline, "workers were left behind"
                time.sleep(0.2)
        finally:
            ray.shutdown()
        (here,) = evaluate("starter", ["uniform"], measure=["PairAccuracy"])
        assert (there.value, there.signature) == (here.value, here.signature)

    def test_a_lost_node_costs_nothing_but_time(
        self, nodes: SimpleNamespace, causal_dir: Path, monkeypatch, tmp_path: Path
    ) -> None:
        many, model, lost = suite(), f"causal:{causal_dir}", []

        def lose_a_node(name: str, done: int, total: int) -> None:
            if 0 < done < total and not lost:
                lost.append(done)
                nodes.cluster.remove_node(nodes.workers.pop(), allow_graceful=False)

        engine = Counting(Ray(nodes.address))
        there = score(many, model, engine=engine, progress=lose_a_node)
        assert lost
        assert lost[0] < COUNT / 2, "a node must be lost in the middle"
        assert sorted(engine.counts) == list(range(COUNT))
        assert set(engine.counts.values()) == {1}
        monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path))
        here = score(many, model)
        assert there.values == pytest.approx(dict(here.values), abs=1e-4)
        assert there.signature == here.signature
