#if Zstandard
    import MartletContent
    import Martlet
    import MartletTesting
    import Testing

    @Suite("Zstandard decoding")
    struct ZstandardTests {
        /// 400 bytes of `Deflated.sample` with a checksum, compressed by Zstandard's own encoder.
        private static let sample = CodedBody.wire(
            "28b52ffd649000a50400a6531d0cd00f4b144551144509005044180018001900ed715b5c169bd5e7f559ac2e83"
                + "c96431596d3ebfd9673508ed7438ad169fc3e533dbb8cb60b5bbbd769bc9e9345bbd0e979b238b7559cc7607b4"
                + "7a2d36afc766f37b99c3ea321b1c0eebb5d9bddee7b2ba0d4683d5607072ea73db9cce61f1995d020a08104ea7"
                + "074af97709d0cfc42df3fa9c486d4d33ee6402ffb53a034546f5d9")
        /// Four times “hello” separated by spaces, with a checksum.
        private static let hello = CodedBody.wire("28b52ffd24176500003068656c6c6f200100994b11175eae0d")
        /// A skippable frame of three bytes.
        private static let skippable = CodedBody.wire("502a4d1803000000aabbcc")

        /// Returns a frame of blocks that each repeat a zero 128 KiB times, with a window of 2^(10 + `windowExponent`)
        /// bytes.
        private static func zeros(blocks: Int, windowExponent: UInt8) -> [UInt8] {
            let block: UInt32 = 128 * 1024 << 3 | 1 << 1
            func bytes(_ header: UInt32) -> [UInt8] {
                [UInt8(header & 0xFF), UInt8(header >> 8 & 0xFF), UInt8(header >> 16 & 0xFF), 0]
            }
            let body = (1..<blocks).flatMap { _ in bytes(block) } + bytes(block | 1)
            return CodedBody.wire("28b52ffd00") + [windowExponent << 3] + body
        }

        @Test(
            "A body decodes to the same bytes for any input size and any output size",
            arguments: [1, 2, 3, 7, 50, .max])
        func pieces(size: Int) {
            for room in [1, 5, 1000] {
                let body = CodedBody(Self.sample, [.zstandard], size: size, room: room)
                #expect(body.bytes == Deflated.sample(400))
                #expect(body.error == nil)
            }
        }

        @Test("A truncated body is an error")
        func truncation() {
            for count in 1..<Self.sample.count {
                let body = CodedBody(Array(Self.sample[..<count]), [.zstandard])
                #expect(body.error == .truncated(.zstandard), "after \(count) bytes")
            }
        }

        @Test("Concatenated frames are joined and skippable frames are skipped", arguments: [1, 4, .max])
        func frames(size: Int) {
            let wire = Self.hello + Self.skippable + Self.sample + Self.hello
            let body = CodedBody(wire, [.zstandard], size: size)
            let text = Array("hello hello hello hello".utf8)
            #expect(body.error == nil)
            #expect(body.bytes == text + Deflated.sample(400) + text)
        }

        @Test("No input, an empty frame and a skippable frame decode to no bytes")
        func empty() {
            for wire in [[], CodedBody.wire("28b52ffd240001000099e9d851"), Self.skippable] {
                let body = CodedBody(wire, [.zstandard])
                #expect(body.bytes.isEmpty)
                #expect(body.error == nil)
            }
        }

        @Test("Bytes after the end of the frame are an error", arguments: [1, .max])
        func trailing(size: Int) {
            let body = CodedBody(Self.hello + Array("trailing".utf8), [.zstandard], size: size)
            #expect(body.error == .trailingData(.zstandard))
            #expect(body.bytes == Array("hello hello hello hello".utf8))
        }

        @Test("Input that does not begin with a frame is rejected")
        func header() {
            #expect(CodedBody(Array("hello world".utf8), [.zstandard]).error == .invalidHeader(.zstandard))
        }

        @Test("A wrong checksum is an error")
        func checksum() {
            var wire = Self.hello
            wire[wire.count - 1] ^= 1
            #expect(CodedBody(wire, [.zstandard]).error == .checksumMismatch(.zstandard))
        }

        @Test("Every changed bit in a frame with a checksum is detected")
        func flippedBits() {
            for index in Self.hello.indices.dropFirst(4) {
                for bit in 0..<8 {
                    var wire = Self.hello
                    wire[index] ^= 1 << bit
                    let body = CodedBody(wire, [.zstandard])
                    let isSame = body.bytes == Array("hello hello hello hello".utf8)
                    #expect(body.error != nil || isSame, "byte \(index), bit \(bit)")
                }
            }
        }

        @Test("A window of 8 MiB is accepted, and 16 MiB is rejected before decoding (RFC 9659)")
        func window() {
            let large = CodedBody(Self.zeros(blocks: 2, windowExponent: 13), [.zstandard])
            #expect(large.error == nil)
            #expect(large.bytes.count == 256 * 1024)
            let tooLarge = CodedBody(Self.zeros(blocks: 2, windowExponent: 14), [.zstandard])
            #expect(
                tooLarge.error == .corrupt(.zstandard, reason: "its window is larger than 8 MiB"))
            #expect(tooLarge.bytes.isEmpty)
        }

        @Test("Forty megabytes of zeros exceed the ratio limit")
        func bomb() {
            let wire = Self.zeros(blocks: 320, windowExponent: 10)
            let body = CodedBody(wire, [.zstandard])
            #expect(body.error == .ratioExceeded(limit: 100))
            #expect(body.bytes.count <= 10 << 20)
            let bounded = CodedBody(
                wire, [.zstandard], limits: DecompressionLimits(maximumByteCount: 1000))
            #expect(bounded.error == .tooLarge(limit: 1000))
            #expect(bounded.bytes.count == 1000)
        }

        @Test("Zstandard can be nested with other codings")
        func nested() throws {
            let plan = try ContentCodingPlan(fieldValues: ["zstd", "gzip"])
            #expect(plan.codings == [.gzip, .zstandard])
            let body = CodedBody(Deflated.bytes(Self.sample, as: .gzip), plan.codings, size: 3)
            #expect(body.bytes == Deflated.sample(400))
        }

        @Test("A session accepts Zstandard and decodes it")
        func session() async throws {
            try await TestOrigin.withOrigin { request in
                let asks = request.headers["Accept-Encoding"]?.contains("zstd") == true
                return asks ? .encoded(Self.sample, coding: "zstd") : .text("not asked")
            } run: { origin in
                let exchange = try await HTTPSession.own().get(origin.url())
                #expect(exchange.body == Deflated.sample(400))
            }
        }
    }
#endif
