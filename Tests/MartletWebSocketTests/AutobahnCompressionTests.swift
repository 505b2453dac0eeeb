import Martlet
import MartletCore
import MartletTestSupport
import MartletTesting
import MartletWebSocket
import Testing

/// The contents of the messages of section 12 of the Autobahn test suite, generated here.
enum AutobahnContent: String, CaseIterable, Sendable {
    /// 12.1 to 12.5 in some order. The prose is sent in binary, as there.
    case json, bitmap, prose, html, document

    var kind: WebSocketMessage.Kind { self == .json || self == .html ? .text : .binary }

    /// Returns a part of the content, which starts again at its end.
    func bytes(from offset: Int, count: Int) -> [UInt8] {
        let data = Self.contents[self] ?? []
        var bytes = Array(data[(offset % data.count)...])
        while bytes.count < count { bytes += data }
        return Array(bytes.prefix(count))
    }

    private static let contents: [AutobahnContent: [UInt8]] = {
        var generator = SeededGenerator(seed: 7692)
        return Dictionary(
            uniqueKeysWithValues: allCases.map { content in
                var bytes: [UInt8] = []
                while bytes.count < 200_000 { bytes += content.piece(bytes.count, using: &generator) }
                return (content, bytes)
            })
    }()

    private func piece(_ offset: Int, using generator: inout SeededGenerator) -> [UInt8] {
        func number(_ bound: UInt64) -> Int { Int(generator.next(upperBound: bound)) }
        let words = (0..<8).map { _ in Self.words[number(UInt64(Self.words.count))] }
        switch self {
        case .json:
            return Array(
                #"{"id":\#(number(1_000_000)),"\#(words[0])":"\#(words[1]) \#(words[2])","\#(words[3])":[\#(offset)]},"#
                    .utf8)
        case .bitmap:
            return (0..<512).map { UInt8(truncatingIfNeeded: (offset / 512 + $0) / 4 + number(4)) }
        case .prose: return Array((words.joined(separator: " ") + ".\n").utf8)
        case .html:
            return Array(#"<li class="\#(words[0])"><a href="/\#(words[1])/\#(offset)">\#(words[2])</a></li>"#.utf8)
        case .document:
            // Compressed streams between a few words of markup.
            return Array("\(offset) 0 obj << /Length 900 >> stream\n".utf8) + (0..<900).map { _ in UInt8(number(256)) }
        }
    }

    private static let words = [
        "wer", "reitet", "so", "spaet", "durch", "nacht", "und", "wind", "es", "ist", "der", "vater", "mit", "seinem",
        "kind", "er", "hat", "den", "knaben", "wohl", "in", "dem", "arm", "fasst", "ihn", "sicher", "haelt", "warm",
    ]
}

/// The sizes of the 18 cases in each part of the sections 12 and 13.
struct AutobahnSizes: CustomTestStringConvertible, Sendable {
    let message: Int
    /// The maximum size of a frame's payload after compression.
    let fragment: Int

    var testDescription: String { "\(message)\(fragment == .max ? "" : "/\(fragment)")" }

    static let all =
        [16, 64, 256, 1024, 4096, 8192, 16_384, 32_768, 65_536, 131_072].map {
            AutobahnSizes(message: $0, fragment: .max)
        }
        + [8192, 16_384, 32_768, 65_536, 131_072].map { AutobahnSizes(message: $0, fragment: 256) }
        + [1024, 4096, 32_768].map { AutobahnSizes(message: 131_072, fragment: $0) }
}

/// An offer of the client, and the reply of a server, as in section 13.
///
/// `WebSocketCompression` makes one offer, with any of the four parameters and windows from 9 bits. It always has
/// `client_max_window_bits`, so that a server is free to choose the window. Only replies have 8 bits: zlib cannot
/// compress for that window, so the client then sends uncompressed messages. A list of several offers (13.7), of which
/// a server takes the first that it supports, cannot be made: the default offer allows each of those choices.
struct AutobahnParameters: CustomTestStringConvertible, Sendable {
    let number: String
    let compression: WebSocketCompression
    /// The value of `Sec-WebSocket-Extensions` in the request.
    let offer: String
    /// The value in the response; `nil` for a server that declines the offer.
    let reply: String?
    /// Whether the client compresses its messages.
    var isClientCompressed: Bool { !(reply ?? "client_max_window_bits=8").contains("client_max_window_bits=8") }

    var testDescription: String { "\(number): \(reply ?? "declined")" }

    init(
        _ number: String, offer: String, reply: String?, serverBits: Int = 15, serverNoContext: Bool = false,
        clientBits: Int = 15, clientNoContext: Bool = false
    ) {
        (self.number, self.offer) = (number, "permessage-deflate; client_max_window_bits" + offer)
        self.reply = reply.map { "permessage-deflate" + $0 }
        var compression = WebSocketCompression()
        (compression.serverMaximumWindowBits, compression.serverNoContextTakeover) = (serverBits, serverNoContext)
        (compression.clientMaximumWindowBits, compression.clientNoContextTakeover) = (clientBits, clientNoContext)
        compression.threshold = 0
        self.compression = compression
    }

    func negotiation() throws -> DeflateNegotiation? {
        try DeflateNegotiation.parse(reply.map { [$0] } ?? [], offer: compression)
    }

    static let all: [AutobahnParameters] = [
        AutobahnParameters("13.1", offer: "", reply: ""),
        AutobahnParameters(
            "13.2", offer: "; server_no_context_takeover",
            reply: "; server_no_context_takeover; client_no_context_takeover", serverNoContext: true),
        AutobahnParameters(
            "13.3", offer: "; server_max_window_bits=9", reply: "; server_max_window_bits=9; client_max_window_bits=9",
            serverBits: 9),
        // Earlier editions use 8 bits.
        AutobahnParameters(
            "13.3 with 8", offer: "; server_max_window_bits=9",
            reply: "; server_max_window_bits=8; client_max_window_bits=8", serverBits: 8),
        AutobahnParameters("13.4", offer: "", reply: "; server_max_window_bits=15; client_max_window_bits=15"),
        AutobahnParameters(
            "13.5", offer: "; server_max_window_bits=9; server_no_context_takeover",
            reply: "; server_no_context_takeover; server_max_window_bits=9; client_no_context_takeover; "
                + "client_max_window_bits=9", serverBits: 9, serverNoContext: true),
        AutobahnParameters(
            "13.6", offer: "; server_no_context_takeover",
            reply: "; server_no_context_takeover; client_no_context_takeover; client_max_window_bits=15",
            serverNoContext: true),
        AutobahnParameters(
            "13.7, first choice", offer: "",
            reply: "; server_no_context_takeover; server_max_window_bits=9; client_no_context_takeover; "
                + "client_max_window_bits=9"),
        AutobahnParameters(
            "13.7, second choice", offer: "", reply: "; server_no_context_takeover; client_no_context_takeover"),
        AutobahnParameters("13.7, last choice", offer: "", reply: ""),
        AutobahnParameters("13.7, no choice", offer: "", reply: nil),
        // The rest of what can be offered.
        AutobahnParameters(
            "a context for one message", offer: "=10; client_no_context_takeover", reply: "", clientBits: 10,
            clientNoContext: true),
    ]

    /// All sizes of windows, with and without context, of both directions.
    static let windows = (8...15).flatMap { bits in
        [false, true].map { isWithout in
            AutobahnParameters(
                "window", offer: "",
                reply: "; server_max_window_bits=\(bits); client_max_window_bits=\(23 - bits)"
                    + (isWithout ? "; server_no_context_takeover; client_no_context_takeover" : ""))
        }
    }
}

@Suite("WebSocket: compressed messages of the Autobahn test suite", .timeLimit(.minutes(10)))
struct AutobahnCompressionTests {
    /// Exchanges messages with an echo, and checks their frames. Autobahn sends 1000 messages in each case; here it is
    /// ten, or two large ones, because a compressor has no other states after the second one.
    private func exchange(_ parameters: AutobahnParameters, _ sizes: AutobahnSizes, _ content: AutobahnContent)
        async throws
    {
        let negotiation = try parameters.negotiation()
        let deflater = negotiation.map {
            MessageDeflater(windowBits: $0.serverWindowBits, keepsContext: !$0.serverNoContextTakeover, level: nil)
        }
        // The client cuts messages before their compression, into pieces of at least 1 KiB.
        let clientFragment = min(max(sizes.fragment, 1024), 1 << 20)
        let opcode: UInt8 = content.kind == .text ? 1 : 2
        let frameCount = (sizes.message - 1) / clientFragment + 1
        var firstBytes = [UInt8](repeating: 0, count: frameCount)
        firstBytes[0] = opcode | (parameters.isClientCompressed ? 0x40 : 0)
        firstBytes[frameCount - 1] |= 0x80
        try await withSocket(negotiation: negotiation) {
            ($0.compression, $0.fragmentSize) = (parameters.compression, ByteCount(clientFragment))
        } _: { (socket, server) async throws in
            let client = Task { await echo(socket) }
            let count = sizes.message > 4096 ? 2 : 10
            for index in 0..<count {
                let payload = content.bytes(from: index * sizes.message, count: sizes.message)
                let sent = try deflater?.compress(payload[...], isLast: true) ?? payload
                let frames = fragments(
                    content.kind, sent, byteCounts: [sizes.fragment], isCompressed: deflater != nil)
                server.send(bytes(of: frames))
                let isSame = try await server.next() == .message(WebSocketMessage(content.kind, payload))
                #expect(isSame, "message \(index)")
            }
            #expect(server.firstBytes == bytes(of: Array(repeating: firstBytes, count: count)))
            try await server.close(client)
        }
    }

    @Test(
        "Contents of all kinds and sizes return, whole and in fragments",
        arguments: AutobahnContent.allCases, AutobahnSizes.all)
    func contents(_ content: AutobahnContent, _ sizes: AutobahnSizes) async throws {
        try await exchange(AutobahnParameters("12", offer: "", reply: ""), sizes, content)
    }

    @Test(
        "Messages of all sizes return with all parameters", arguments: AutobahnParameters.all, AutobahnSizes.all)
    func parameters(_ parameters: AutobahnParameters, _ sizes: AutobahnSizes) async throws {
        try await exchange(parameters, sizes, .json)
    }

    @Test("Messages return with windows of all sizes", arguments: AutobahnParameters.windows)
    func windows(_ parameters: AutobahnParameters) async throws {
        try await exchange(parameters, AutobahnSizes(message: 65_536, fragment: 4096), .prose)
    }

    @Test("A session makes the offer, and follows the reply of a server", arguments: AutobahnParameters.all)
    func sessions(_ parameters: AutobahnParameters) async throws {
        let handler = OriginHandler.webSocket(extensions: parameters.reply) { socket in
            #expect(socket.request.headers["Sec-WebSocket-Extensions"] == parameters.offer)
            while let message = try await socket.receive() {
                try await socket.send(message, fragmentSize: 1000, isCompressed: parameters.reply != nil)
            }
        }
        try await TestOrigin.withOrigin(handler: handler) { (origin) async throws in
            let options = WebSocketOptions { $0.compression = parameters.compression }
            try await HTTPSession.own(origin).webSocket(origin.url("/"), options: options) { (socket) async throws in
                #expect(socket.isCompressed == (parameters.reply != nil))
                for content in AutobahnContent.allCases {
                    let message = WebSocketMessage(content.kind, content.bytes(from: 0, count: 20_000))
                    try await socket.send(message)
                    #expect(try await socket.receive() == message)
                }
            }
        }
    }

    /// Decompresses a message in steps of 64 bytes: zlib then rejects references beyond the window and one step.
    private func inflate(_ payload: [UInt8], _ inflater: MessageInflater) throws -> [UInt8] {
        var (result, rest) = ([UInt8](), payload[...])
        while !rest.isEmpty {
            let (bytes, consumed) = try inflater.decode(rest, upTo: 64)
            result += bytes
            rest = rest.dropFirst(consumed)
            if consumed == 0, bytes.isEmpty { throw WebSocketError.invalidCompression("no progress") }
        }
        while case let bytes = try inflater.finish(upTo: 64), !bytes.isEmpty { result += bytes }
        return result
    }

    @Test("The client never refers back by more than the window that was negotiated", arguments: 9...15)
    func windowLimit(_ bits: Int) async throws {
        var negotiation = DeflateNegotiation()
        negotiation.clientWindowBits = bits
        try await withSocket(negotiation: negotiation) { (socket, server) async throws in
            let inflater = MessageInflater(windowBits: bits, keepsContext: true)
            // The smallest window, to see that these messages do need a larger one.
            let small = MessageInflater(windowBits: 9, keepsContext: true)
            var isRejected = false
            for offset in [0, 40_000] {
                let message = AutobahnContent.html.bytes(from: offset, count: 40_000)
                try await socket.send(message)
                var (parser, payload) = (FrameParser(isServer: true), [UInt8]())
                parser.feed(try #require(await server.transport.next()))
                while let part = try parser.next() { if case .payload(let bytes) = part { payload += bytes } }
                let isSame = try inflate(payload, inflater) == message
                #expect(isSame)
                if !isRejected { isRejected = (try? inflate(payload, small)) != message }
            }
            #expect(isRejected == (bits > 9))
        }
    }

    @Test("A message with a final block, and one without any byte, are read", arguments: [true, false])
    func unusualEncodings(_ keepsContext: Bool) async throws {
        // A stored block that is marked as the last one, and the empty block that then follows (RFC 7692 §7.2.3.4).
        let final: [UInt8] = [0x01, 0x05, 0x00, 0xFA, 0xFF] + Array("Hello".utf8) + [0x00]
        // From RFC 7692 §7.2.3.2: the second one refers to the first.
        let hello: [UInt8] = [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00]
        let again: [UInt8] = [0xF2, 0x00, 0x11, 0x00, 0x00]
        var negotiation = DeflateNegotiation()
        negotiation.serverNoContextTakeover = !keepsContext
        try await withSocket(negotiation: negotiation) { (socket, server) async throws in
            for bytes in [final, [], hello, hello, [0x00]] { server.send(frame(1, bytes, bits: 4)) }
            if keepsContext { server.send(frame(1, again, bits: 4), close(1000)) } else { server.send(close(1000)) }
            var texts: [String?] = []
            for try await message in socket.messages { texts.append(message.text) }
            #expect(texts == ["Hello", "", "Hello", "Hello", ""] + (keepsContext ? ["Hello"] : []))
        }
    }
}
