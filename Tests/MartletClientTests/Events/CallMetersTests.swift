#if Metrics
    import Martlet
    import MartletTesting
    import MetricsTestKit
    import Testing

    @Suite("Metrics of calls")
    struct CallMetersTests {
        @Test("Metrics count calls by outcome, requests, retries, bytes, durations and the pool")
        func counted() async throws {
            try await TestOrigin.withOrigin { request in
                switch request.path {
                case "/a": .redirect(to: "/b")
                case "/none": OriginResponse(404)
                default: .text("hello")
                }
            } run: { origin async throws in
                let factory = TestMetrics()
                let session = HTTPSession.own { $0.metricsFactory = factory }
                _ = try await session.get(origin.url("/a"))
                _ = try await session.get(origin.url("/b"))
                _ = try await session.get(origin.url("/none"))
                let closed = try ClosedPort.shared.get()
                await #expect(throws: HTTPError.self) { try await session.get(closed.url) }
                #expect(try factory.expectCounter("martlet.calls", [("result", "2xx")]).totalValue == 2)
                #expect(try factory.expectCounter("martlet.calls", [("result", "4xx")]).totalValue == 1)
                #expect(try factory.expectCounter("martlet.calls", [("result", "failed")]).totalValue == 1)
                #expect(try factory.expectCounter("martlet.calls", [("result", "cancelled")]).totalValue == 0)
                #expect(try factory.expectCounter("martlet.requests").totalValue >= 4)
                #expect(try factory.expectCounter("martlet.repeats").totalValue == 1)
                #expect(try factory.expectCounter("martlet.bytes.received").totalValue == 10)
                #expect(try factory.expectCounter("martlet.bytes.sent").totalValue > 100)
                #expect(
                    try factory.expectTimer("martlet.call.duration", [("result", "2xx")]).values.count == 2)
                #expect(try factory.expectMeter("martlet.pool.leased").lastValue == 0)
            }
        }
    }
#endif
