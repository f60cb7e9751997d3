from trainmark.backends.conformance import BackendConformance


class TestScratch(BackendConformance):
    backend = "scratch"
