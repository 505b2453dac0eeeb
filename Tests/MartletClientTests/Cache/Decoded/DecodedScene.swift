@testable import MartletCredentials
import MartletWire
import Synchronization
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletConditions

/// The decoded value of a test: the body and the number of the decoding.
struct DecodedText: Hashable, Sendable {
    let text: String
    let number: Int
}

/// A substitute for the session and its response cache, with a counting decoder. Both can be held at gates.
final class DecodedScene: Sendable {
    struct Rejected: Error {}

    /// The content of the next responses.
    struct StreamedResponse: Sendable {
        var body = "a"
        var representation: UInt64?
        var status = 200
    }

    private struct State {
        var answer: StreamedResponse
        var fetchGate: Promise<Void>?
        var decodeGate: Promise<Void>?
        var rejections = 0
        var decodings = 0
        var cancelledDecodings = 0
        var cancelledFetches = 0
    }

    private let state: Mutex<State>
    let fetches = Counter()
    let asked = Counter()

    init(_ representation: UInt64?) {
        state = Mutex(State(answer: StreamedResponse(representation: representation)))
    }

    var decodings: Int { state.withLock { $0.decodings } }
    var cancelledFetches: Int { state.withLock { $0.cancelledFetches } }
    var cancelledDecodings: Int { state.withLock { $0.cancelledDecodings } }

    func answer(_ change: (inout StreamedResponse) -> Void) { state.withLock { change(&$0.answer) } }
    /// Makes the next `count` decodings fail.
    func reject(_ count: Int) { state.withLock { $0.rejections = count } }

    /// Makes requests that start from now on wait for the gate; with `nil` they do not wait.
    func holdFetches(_ gate: Promise<Void>?) { state.withLock { $0.fetchGate = gate } }
    /// Makes decodings that start from now on wait for the gate; with `nil` they do not wait.
    func holdDecodings(_ gate: Promise<Void>?) { state.withLock { $0.decodeGate = gate } }

    func cache(
        limit: ByteCount = .bytes(1000), countLimit: Int = 10_000,
        memoryPressure: MemoryPressureSource? = nil,
        cost: @escaping @Sendable (DecodedText) -> Int = { $0.text.utf8.count }
    ) -> DecodedCache<DecodedText> {
        DecodedCache(
            fetch: { try await self.exchange($0) }, limit: limit, countLimit: countLimit,
            memoryPressure: memoryPressure, cost: cost, decode: { try await self.decode($0) })
    }

    /// Returns the current response to a request.
    func exchange(_ call: DecodedCall) async throws -> HTTPExchange {
        fetches.add()
        do {
            try await state.withLock { $0.fetchGate }?.value
        } catch {
            state.withLock { $0.cancelledFetches += 1 }
            throw error
        }
        let answer = state.withLock { $0.answer }
        let request = call.resource.request
        let sent = try Call(
            request: request, url: try HTTPSession.url(of: request), body: .none, options: call.options,
            settings: SessionSettings(.ephemeral))
        return MartletCore.StreamedResponse(
            call: sent, channel: .stored(ServedBody(representation: answer.representation)),
            head: ResponseHead(status: answer.status, fields: FieldBlock()), codings: [],
            expectedContentLength: nil, hasTrailers: false, interim: [], attempts: 1, waited: sent.start
        ).exchange(with: Array(answer.body.utf8), isCollected: true)
    }

    private func decode(_ exchange: HTTPExchange) async throws -> DecodedText {
        let (number, gate, rejects) = state.withLock { state in
            state.decodings += 1
            state.rejections -= 1
            return (state.decodings, state.decodeGate, state.rejections >= 0)
        }
        do {
            try await gate?.value
        } catch {
            state.withLock { $0.cancelledDecodings += 1 }
            throw error
        }
        if rejects { throw Rejected() }
        return DecodedText(text: exchange.text, number: number)
    }
}

/// A body that was already read. Tests use only its representation number.
private final class ServedBody: StoredBody {
    let representation: UInt64?
    let exchange: Exchange? = nil
    let trailers: FieldBlock? = nil
    let collected: [UInt8] = []

    init(representation: UInt64?) { self.representation = representation }

    func takeWhole() -> [UInt8]? { nil }
    func collect() {}
    func next(
        for call: Call, control: TransferControl, deadline: MonotonicTime?
    ) async throws -> [UInt8]? { nil }
    func leave() {}
    func leave(waitingUntil deadline: MonotonicTime, for control: TransferControl) async {}
    func withdraw() async {}
}
