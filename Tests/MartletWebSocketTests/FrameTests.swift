import MartletWebSocket
import Testing

@Suite("WebSocket: frames")
struct FrameTests {
    @Test(
        "The length of a payload is encoded in the fewest bytes",
        arguments: [
            (0, [0x82, 0x00]), (125, [0x82, 0x7D]), (126, [0x82, 0x7E, 0x00, 0x7E]),
            (65_535, [0x82, 0x7E, 0xFF, 0xFF]),
            (65_536, [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] as [(Int, [UInt8])])
    func heads(_ count: Int, _ bytes: [UInt8]) throws {
        #expect(FrameHead(.binary, payloadByteCount: count).bytes == bytes)
        var parser = FrameParser()
        parser.feed(bytes)
        #expect(try parser.next() == .head(FrameHead(.binary, payloadByteCount: count)))
    }

    @Test("The examples of RFC 6455 §5.7 are read as they are meant")
    func examples() throws {
        var parser = FrameParser(isServer: true)
        parser.feed([0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
        #expect(try parser.next() == .head(FrameHead(.text, payloadByteCount: 5, maskingKey: 0x37FA_213D)))
        #expect(try parser.next() == .payload(Array("Hello".utf8)))
        #expect(try parser.next() == .end)
        #expect(try parser.next() == nil)
    }

    @Test("A masked frame is read the same at every cut, and each frame has its own key")
    func masking() throws {
        let payload = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
        let bytes = FrameHead.frame(.binary, payload)
        for cut in 0...bytes.count {
            var parser = FrameParser(isServer: true)
            var read: [UInt8] = []
            for piece in [bytes[..<cut], bytes[cut...]] {
                parser.feed(Array(piece))
                while let part = try parser.next() { if case .payload(let bytes) = part { read += bytes } }
            }
            #expect(read == payload, "cut at \(cut)")
        }
        let keys = (0..<50).map { _ in Array(FrameHead.frame(.ping, [1]).dropFirst(2).prefix(4)) }
        #expect(Set(keys).count > 45)
    }

    @Test("A parser that has returned everything retains nothing of what it was fed")
    func releasedBytes() throws {
        var parser = FrameParser()
        var bytes = frame(9) + frame(2, [1, 2, 3])
        func address() -> UInt { unsafe bytes.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } }
        let before = address()
        parser.feed(bytes)
        while try parser.next() != nil {}
        // A shared array is copied when it is changed.
        bytes[0] = 0
        #expect(address() == before)
    }

    @Test("A part of a payload of any length is masked at any offset")
    func maskedParts() {
        for count in 0...40 {
            for (start, offset) in (0...9).flatMap({ start in (0...5).map { (start, $0) } }) where start <= count {
                let bytes = (0..<count).map { UInt8($0 * 5) }
                var masked = bytes
                FrameHead.mask(&masked, from: start, with: 0x0102_0408, offset: offset)
                let expected = bytes.indices.map { index in
                    index < start ? bytes[index] : bytes[index] ^ (1 << UInt8((index - start + offset) % 4))
                }
                #expect(masked == expected, "\(count) bytes from \(start), offset \(offset)")
            }
        }
    }

    @Test(
        "Frames that RFC 6455 §5.2 does not allow are errors, which are permanent",
        arguments: [
            ("a masked frame of a server", [0x82, 0x80, 1, 2, 3, 4]),
            ("the highest bit of a length", [0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            ("a length of 2^64 - 1", [0x82, 0x7F, 255, 255, 255, 255, 255, 255, 255, 255]),
            ("16 bits for 125", [0x82, 0x7E, 0x00, 0x7D]),
            ("64 bits for 65,535", [0x82, 0x7F, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]),
            ("RSV2", [0xA2]), ("RSV3", [0x92]), ("an unknown opcode", [0x83]), ("a fragmented ping", [0x09, 0x00]),
            ("a ping with 126 bytes", [0x89, 0x7E, 0x00, 0x7E]), ("HTTP", Array("HTTP/1.1 200 OK\r\n\r\n".utf8)),
        ] as [(String, [UInt8])])
    func violations(_ name: String, _ bytes: [UInt8]) {
        for isByByte in [false, true] {
            var parser = FrameParser()
            var error: WebSocketError?
            do throws(WebSocketError) {
                for piece in isByByte ? bytes.map({ [$0] }) : [bytes] {
                    parser.feed(piece)
                    while try parser.next() != nil {}
                }
            } catch let caught { error = caught }
            guard case .protocolViolation = error else {
                Issue.record("\(name): \(String(describing: error))")
                continue
            }
            parser.feed([0x82, 0x00])
            #expect(throws: WebSocketError.self) { try parser.next() }
        }
    }

    @Test("A frame of a client that is not masked is an error")
    func unmaskedClient() {
        var parser = FrameParser(isServer: true)
        parser.feed([0x82, 0x00])
        #expect(throws: WebSocketError.protocolViolation("a frame is not masked")) { try parser.next() }
    }
}
