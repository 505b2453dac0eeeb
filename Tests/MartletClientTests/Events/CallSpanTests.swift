#if Tracing
    import InMemoryTracing
    import Martlet
    import MartletTesting
    import Testing
    import Tracing

    @Suite("Tracing of calls")
    struct CallSpanTests {
        @Test("A call is a client span with attributes, an event per hop, and trace fields in each request")
        func span() async throws {
            try await TestOrigin.withOrigin { request in
                request.path == "/a" ? .redirect(to: "/b?s3cret") : .text("hello")
            } run: { origin async throws in
                let tracer = InMemoryTracer()
                let session = HTTPSession.own { $0.tracer = tracer }
                try await tracer.withSpan("caller") { _ in _ = try await session.get(origin.url("/a?s3cret"))
                }
                let spans = tracer.finishedSpans
                let call = try #require(spans.first { $0.operationName == "GET" })
                let caller = try #require(spans.first { $0.operationName == "caller" })
                #expect(call.parentSpanID == caller.spanID)
                #expect(call.kind == .client)
                #expect(call.attributes.get("http.request.method") == .string("GET"))
                #expect(call.attributes.get("http.response.status_code") == .int64(200))
                #expect(call.attributes.get("url.full") == .string(origin.url("/a")))
                #expect(call.attributes.get("server.port") == .int64(Int64(origin.port)))
                #expect(call.attributes.get("http.request.resend_count") == .int64(1))
                #expect(call.events.map(\.name) == ["martlet.redirect"])
                #expect(call.status == nil)
                let values = origin.requests.map { $0.headers[InMemoryTracer.spanIDKey] }
                #expect(values == [call.spanID, call.spanID])
            }
        }

        @Test("A status of 400 or more and a failure are errors of the span")
        func errors() async throws {
            try await TestOrigin.withOrigin { _ in
                OriginResponse(404)
            } run: { origin async throws in
                let tracer = InMemoryTracer()
                let session = HTTPSession.own { $0.tracer = tracer }
                _ = try await session.get(origin.url())
                let closed = try ClosedPort.shared.get()
                await #expect(throws: HTTPError.self) { try await session.get(closed.url) }
                let spans = tracer.finishedSpans
                #expect(spans.map(\.status?.code) == [.error, .error])
                #expect(spans.first?.attributes.get("error.type") == .string("404"))
                #expect(tracer.activeSpans.isEmpty)
            }
        }
    }
#endif
