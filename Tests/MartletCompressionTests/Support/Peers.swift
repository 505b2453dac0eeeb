import Testing
import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization

@testable import MartletContent

extension HTTPSession {
    /// Creates a session for one test, whose timeouts end only hangs.
    static func own(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral.patient()
        configuration.continueTimeout = .seconds(300)
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }
}

extension BodyCompression {
    /// All codings of this build.
    static let all = ContentCoding.allCases.compactMap { BodyCompression(name: $0.rawValue, level: nil) }
}

/// Decodes a body by the value of its `Content-Encoding`.
func decoded(_ bytes: [UInt8], _ codings: String?) throws -> [UInt8] {
    let plan = try ContentCodingPlan(fieldValues: codings.map { [$0] } ?? [], unknown: .rejected)
    let decoder = ContentDecoder(codings: plan.codings, limits: DecompressionLimits(maximumRatio: .max))
    var (result, rest) = ([UInt8](), bytes[...])
    while true {
        let piece = try decoder.decode(rest, endOfInput: true, upTo: 64 * 1024)
        result += piece.bytes
        rest = rest.dropFirst(piece.consumed)
        if piece.isFinished { return result }
    }
}

/// Returns lines of text that become about a fifth of their size.
func lines(_ byteCount: Int) -> [UInt8] {
    var text: [UInt8] = []
    var number = 0
    while text.count < byteCount {
        text += Array("line \(number) of a report\n".utf8)
        number += 1
    }
    return Array(text.prefix(byteCount))
}

/// A block of random bytes, twice as large as the window of deflate: repetitions of it are not compressible.
let noise = (0..<(64 << 10)).map { _ in UInt8.random(in: .min ... .max) }

/// Pieces of bytes as an asynchronous sequence, which fails at its end if an error is given.
struct Pieces: AsyncSequence, Sendable {
    var pieces: [[UInt8]]
    var failure: (any Error)?

    struct Iterator: AsyncIteratorProtocol {
        var pieces: ArraySlice<[UInt8]>
        var failure: (any Error)?

        mutating func next() async throws -> [UInt8]? {
            if let piece = pieces.popFirst() { return piece }
            if let failure { throw failure }
            return nil
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(pieces: pieces[...], failure: failure) }
}

extension Pieces {
    /// Cuts bytes into pieces of the given sizes, used in turn.
    init(_ bytes: [UInt8], sizes: [Int]) {
        var (pieces, rest) = ([[UInt8]](), bytes[...])
        while !rest.isEmpty {
            let piece = rest.prefix(sizes[pieces.count % sizes.count])
            pieces.append(Array(piece))
            rest = rest.dropFirst(piece.count)
        }
        self.init(pieces: pieces)
    }
}

/// The requests that an origin has received, with their bodies.
final class Inbox: Sendable {
    struct Entry: Sendable {
        let path: String
        let headers: OriginFields
        /// The body as received, without chunks.
        let raw: [UInt8]
        /// The body after its codings were decoded.
        let content: [UInt8]

        var coding: String? { headers["Content-Encoding"] }
        var isChunked: Bool { headers["Transfer-Encoding"] == "chunked" }
    }

    private let state = Mutex<[Entry]>([])

    var entries: [Entry] { state.withLock { $0 } }
    var codings: [String?] { entries.map(\.coding) }

    /// Reads, decodes and records a request.
    @discardableResult func receive(_ request: OriginRequest) async throws -> Entry {
        let raw = try await request.collectBody()
        let entry = Entry(
            path: request.path, headers: request.headers, raw: raw,
            content: try decoded(raw, request.headers["Content-Encoding"]))
        state.withLock { $0.append(entry) }
        return entry
    }

    /// Runs a test with an origin that records its requests, and responds with 200 unless `respond` returns a response.
    static func run(
        _ respond: @escaping @Sendable (Entry) throws -> OriginResponse? = { _ in nil },
        _ body: (TestOrigin, Inbox) async throws -> Void
    ) async throws {
        let inbox = Inbox()
        try await TestOrigin.withOrigin { request in
            try respond(try await inbox.receive(request)) ?? .text("ok")
        } run: { origin async throws in
            try await body(origin, inbox)
            #expect(origin.recorder.problems.isEmpty)
        }
    }
}
