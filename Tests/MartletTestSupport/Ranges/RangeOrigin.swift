package import MartletTesting
import Synchronization

/// An origin that serves one file in ranges with a configurable behavior, and records requests and sent bytes.
package final class RangeOrigin: Sendable {
    private struct State {
        var conduct: RangeBehavior
        /// The number of the behavior, from 0; responses of earlier ones are not counted.
        var round = 0
        var requests: [RangeRequest] = []
        var sentByteCount: UInt64 = 0
        /// The gates of responses, and whether all of them are open.
        var gates: Set<String> = []
        var isReleased = false
    }

    /// The state, shared by the connection tasks and the test.
    private let state: Mutex<State>
    /// The signals of the gates.
    package let signals = OriginSignals()

    /// The number of bytes that are generated and sent together.
    private static let pieceSize = 64 << 10

    /// Creates an origin with a behavior.
    package init(_ conduct: RangeBehavior) {
        state = Mutex(State(conduct: conduct))
    }

    /// Runs a closure with an origin, and then stops the origin even after an error.
    @discardableResult
    package static func with<Value>(
        _ conduct: RangeBehavior, _ options: OriginOptions = .plain,
        run body: (RangeOrigin, TestOrigin) async throws -> Value
    ) async throws -> Value {
        let ranges = RangeOrigin(conduct)
        return try await TestOrigin.withOrigin(options, handler: ranges.handler) { origin in
            try await body(ranges, origin)
        }
    }

    // MARK: Inspecting

    /// The requests to the current behavior in order.
    package var requests: [RangeRequest] { state.withLock { $0.requests } }

    /// The number of body bytes that were passed to the system under the current behavior.
    package var sentByteCount: UInt64 { state.withLock { $0.sentByteCount } }

    // MARK: Behaving

    /// Sets another behavior and resets the counts.
    package func play(_ conduct: RangeBehavior) {
        state.withLock { state in
            let gates = state.gates
            state = State(conduct: conduct, round: state.round + 1)
            state.gates = gates
        }
    }

    /// Opens all gates permanently.
    package func release() {
        let gates = state.withLock { state in
            state.isReleased = true
            return state.gates
        }
        for name in gates { signals.raise("\(name) go") }
    }

    /// The handler of the origin's requests.
    package var handler: OriginHandler {
        OriginHandler { request in self.respond(to: request) }
    }

    private func respond(to request: OriginRequest) -> OriginResponse {
        let (round, noted, answer) = state.withLock { state -> (Int, RangeRequest, RangeResponse) in
            var noted = RangeRequest(request, number: state.requests.count + 1)
            let index = state.conduct.versionIndex(requests: noted.number, bytes: state.sentByteCount)
            var answer = RangeResponse(to: noted, of: state.conduct.versions[index], by: state.conduct)
            for act in state.conduct.acts where act.applies(noted) { act.change(&answer) }
            noted.status = answer.replacement?.status ?? answer.status
            if answer.replacement == nil {
                noted.version = index
                let values = answer.fields.values(of: "Content-Range")
                noted.contentRange = values.isEmpty ? nil : values.joined(separator: ", ")
            }
            state.requests.append(noted)
            if let name = answer.gate?.name { state.gates.insert(name) }
            if state.isReleased { answer.gate = nil }
            return (state.round, noted, answer)
        }
        if let replacement = answer.replacement { return replacement }
        return response(answer, to: noted, round: round)
    }

    private func response(_ answer: RangeResponse, to request: RangeRequest, round: Int) -> OriginResponse {
        let count = answer.contents.map { UInt64($0.count) } ?? UInt64(answer.body.count)
        let isFramed = answer.framing == .automatic && answer.declaredByteCount == nil
        var response = OriginResponse(
            answer.status, headers: answer.fields,
            body: .stream(length: isFramed && answer.surplus == 0 ? count : nil) { [self] writer in
                try await send(answer, count + answer.surplus, request, round: round, to: writer)
            })
        response.framing = answer.framing
        response.fault = answer.fault
        if answer.framing == .automatic, !isFramed || answer.surplus > 0 {
            response.headers["Content-Length"] = "\(answer.declaredByteCount ?? count)"
            response.closesConnection = true
        }
        return response
    }

    private func send(
        _ answer: RangeResponse, _ count: UInt64, _ request: RangeRequest, round: Int,
        to writer: OriginBodyWriter
    ) async throws {
        var gate = answer.gate
        var offset: UInt64 = 0
        while true {
            if let (name, place) = gate, offset >= place {
                gate = nil
                signals.raise(name)
                try await signals.wait(for: "\(name) go", within: .seconds(600))
            }
            guard offset < count else { break }
            if isCut(request, round: round) { throw OriginFault(.close) }
            var size = min(
                count - offset, UInt64(answer.pace?.pieceSize(at: offset) ?? RangeOrigin.pieceSize))
            if let gate, gate.byteCount > offset { size = min(size, gate.byteCount - offset) }
            // The bytes are counted before the client can receive them, so that a later check finds them.
            let cut = answer.fault?.bodyByteCount.map { max($0, offset) - offset } ?? size
            add(min(size, cut), to: request, round: round)
            try await writer.write(piece(of: answer, at: offset, count: Int(size)))
            offset += size
            if let pace = answer.pace {
                try await Task.sleep(for: pace.pause(after: Int(size), endingAt: offset))
            }
        }
    }

    private func piece(of answer: RangeResponse, at offset: UInt64, count: Int) -> [UInt8] {
        if let contents = answer.contents {
            let start = min(Int(offset), contents.count)
            let piece = Array(contents[start..<min(contents.count, start + count)])
            return piece + [UInt8](repeating: 0x21, count: count - piece.count)
        }
        // Surplus bytes are not part of the file.
        let rest = UInt64(answer.body.count) - min(offset, UInt64(answer.body.count))
        let own = Int(min(rest, UInt64(count)))
        return answer.version.bytes(from: answer.body.lowerBound + offset, count: own)
            + [UInt8](repeating: 0x21, count: count - own)
    }

    /// Returns whether the response must end because its version has ended.
    private func isCut(_ request: RangeRequest, round: Int) -> Bool {
        state.withLock { state in
            guard state.round == round, state.conduct.cutsAtFlips else { return false }
            let index = state.conduct.versionIndex(
                requests: state.requests.count, bytes: state.sentByteCount)
            return index != request.version
        }
    }

    private func add(_ bytes: UInt64, to request: RangeRequest, round: Int) {
        state.withLock { state in
            guard state.round == round else { return }
            state.sentByteCount += bytes
            state.requests[request.number - 1].sentByteCount += bytes
        }
    }
}

/// One version of the file of a range origin. It is a part of ``TestPattern``, so that a file of any length needs no
/// memory and two versions differ from their first byte on.
package struct RangeVersion: Hashable, Sendable {
    /// The length in bytes.
    package var byteCount: UInt64
    /// The start in the pattern, which differs between versions.
    package var place: UInt64
    /// The entity tag as sent, weak or strong; `nil` for none.
    package var entityTag: String?
    /// The modification time in seconds since 1970; `nil` for no Last-Modified.
    package var lastModified: Int64?

    /// Creates a version of the file.
    package init(
        _ byteCount: UInt64, place: UInt64 = 0, entityTag: String? = nil, lastModified: Int64? = nil
    ) {
        self.byteCount = byteCount
        self.place = place
        self.entityTag = entityTag
        self.lastModified = lastModified
    }

    /// Returns some of the version's bytes.
    package func bytes(from offset: UInt64, count: Int) -> [UInt8] {
        TestPattern.bytes(from: place + offset, count: count)
    }

    /// All bytes of the version.
    package var contents: [UInt8] { bytes(from: 0, count: Int(byteCount)) }

    /// Returns the first offset at which received bytes differ from the version; `nil` if all are equal.
    package func firstMismatch(in bytes: [UInt8], at offset: UInt64 = 0) -> UInt64? {
        guard offset <= byteCount, UInt64(bytes.count) <= byteCount - offset else { return byteCount }
        return TestPattern.firstMismatch(in: bytes, at: place + offset).map { offset + UInt64($0) }
    }
}
