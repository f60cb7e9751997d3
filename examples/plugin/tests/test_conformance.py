from trainmark_conformance import BackendConformance


class TestScratch(BackendConformance):
    backend = "scratch"
