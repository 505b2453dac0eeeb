#if Brotli
    import MartletContent
    import Martlet
    import MartletTesting
    import Testing

    @Suite("Brotli decoding")
    struct BrotliTests {
        /// 400 bytes of `Deflated.sample`, compressed by Brotli's own encoder.
        private static let sample = CodedBody.wire(
            "1b8f01080441b652280d8c96f19e0c94e3f2d5440666bb7ac10759bd020fdc64a3618660fca60f5a580c0e1f83"
                + "64d169743a8560d1186c068ba411342e3f2e9bc56132e9248fcde5b128048fa0911c064165d0584c2a934ba570"
                + "081695e4106c3e92e4c726696c167f78561e87ef4d841b7da3d7b95230bbcd26497bb07ed0eb392994dbfc5537"
                + "83c11777f3c8d90d")
        /// 40 MiB of zeros, compressed.
        private static let zeros = CodedBody.wire(
            "cfffff7ff82700e2b14020f7fe9ffffffff04f00c4610180eefd7ffeffffe19f0088c32200ddfb3f")
        /// A stream with a window of 256 MiB, which needs the large-window extension.
        private static let largeWindow = CodedBody.wire(
            "111cffffffe19f0088c70201b9f7fffcffff877f02200e0b00e8defff3ffff1ffe0980382c00a07bff9fffffff"
                + "f82700e2b00080eefd3f")

        @Test(
            "A body decodes to the same bytes for any input size and any output size",
            arguments: [1, 2, 3, 7, 50, .max])
        func pieces(size: Int) {
            for room in [1, 5, 1000] {
                let body = CodedBody(Self.sample, [.brotli], size: size, room: room)
                #expect(body.bytes == Deflated.sample(400))
                #expect(body.error == nil)
            }
        }

        @Test("A truncated body delivers the bytes before the cut and then fails")
        func truncation() {
            for count in 1..<Self.sample.count {
                let body = CodedBody(Array(Self.sample[..<count]), [.brotli])
                #expect(body.error == .truncated(.brotli), "after \(count) bytes")
                #expect(Deflated.sample(400).starts(with: body.bytes))
            }
        }

        @Test("No input and an empty stream decode to no bytes")
        func empty() {
            #expect(CodedBody([], [.brotli]) == CodedBody(CodedBody.wire("3b"), [.brotli]))
            #expect(CodedBody([], [.brotli]).error == nil)
        }

        @Test("Bytes after the end of the stream are an error", arguments: [1, .max])
        func trailing(size: Int) {
            let body = CodedBody(Self.sample + [0], [.brotli], size: size)
            #expect(body.error == .trailingData(.brotli))
            #expect(body.bytes == Deflated.sample(400))
        }

        @Test("Invalid Brotli data is reported as corrupt by every later call")
        func corrupt() {
            for wire in ["ffffffffff", "3cffffffffffff", "91"] {
                let body = CodedBody(CodedBody.wire(wire), [.brotli])
                guard case .corrupt(.brotli, _) = body.error else {
                    if case .truncated = body.error { continue }
                    Issue.record("\(wire) is \(String(describing: body.error))")
                    continue
                }
            }
            guard case .corrupt = CodedBody(CodedBody.wire("ffffffffff"), [.brotli]).error else {
                Issue.record("all bits set are a stream")
                return
            }
        }

        @Test("A stream with a window above 16 MiB is rejected")
        func window() {
            guard case .corrupt(.brotli, _) = CodedBody(Self.largeWindow, [.brotli]).error else {
                Issue.record("it is decoded")
                return
            }
        }

        @Test("Forty megabytes of zeros in forty bytes exceed the ratio limit")
        func bomb() {
            let body = CodedBody(Self.zeros, [.brotli])
            #expect(body.error == .ratioExceeded(limit: 100))
            #expect(body.bytes.count <= 10 << 20)
            let bounded = CodedBody(
                Self.zeros, [.brotli], limits: DecompressionLimits(maximumByteCount: 1000))
            #expect(bounded.error == .tooLarge(limit: 1000))
            #expect(bounded.bytes.count == 1000)
        }

        @Test("Brotli can be nested with other codings")
        func nested() throws {
            let plan = try ContentCodingPlan(fieldValues: ["br, gzip"])
            #expect(plan.codings == [.gzip, .brotli])
            let body = CodedBody(Deflated.bytes(Self.sample, as: .gzip), plan.codings, size: 3)
            #expect(body.bytes == Deflated.sample(400))
            #expect(body.error == nil)
        }

        @Test("A session accepts Brotli and decodes it")
        func session() async throws {
            try await TestOrigin.withOrigin { request in
                let asks = request.headers["Accept-Encoding"]?.contains("br") == true
                return asks ? .encoded(Self.sample, coding: "br") : .text("not asked")
            } run: { origin in
                let exchange = try await HTTPSession.own().get(origin.url())
                #expect(exchange.body == Deflated.sample(400))
            }
        }
    }
#endif
