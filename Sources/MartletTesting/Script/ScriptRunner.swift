import MartletTransport
import Synchronization

/// Plays a script on one connection.
struct ScriptRunner: Sendable {
    private let channel: OriginChannel
    private let ledger: OriginLedger
    private let signals: OriginSignals

    /// Why a script ends before its last step.
    private enum Interruption: Error {
        /// The client sent something else than expected: what is to be noted.
        case surprise(String)
    }

    init(channel: OriginChannel, ledger: OriginLedger, signals: OriginSignals) {
        self.channel = channel
        self.ledger = ledger
        self.signals = signals
        ledger.beginTranscript(ofConnection: channel.number)
    }

    /// Plays the script; the connection is closed afterwards.
    func run(_ script: ServerScript) async {
        for (index, step) in script.steps.enumerated() {
            do {
                try await play(step.action)
            } catch Interruption.surprise(let what) {
                ledger.note("connection \(channel.number), step \(index + 1): \(what)")
                return channel.reset()
            } catch {
                ledger.note("connection \(channel.number), step \(index + 1): \(error)")
                return channel.close()
            }
        }
        channel.close()
    }

    private func play(_ action: ScriptStep.Action) async throws {
        switch action {
        case .expect(let bytes): try await expect(bytes)
        case .expectRequestHead: try await readHead()
        case .readBody(let count): try await read(count)
        case .readAll: try await readAll()
        case .send(let bytes): try await channel.send(bytes)
        case .sendPieces(let bytes, let size, let interval): try await send(bytes, size: size, interval)
        case .sendPattern(let count): try await sendPattern(count)
        case .sendEndlessly(let bytes): await sendEndlessly(bytes)
        case .pause(let duration): try await Task.sleep(for: duration)
        case .stall: await stall()
        case .awaitClose: await awaitClose()
        case .close: channel.close()
        case .cut: channel.cut()
        case .reset: channel.reset()
        case .shutdownWriting: channel.stream.shutdownWriting()
        case .raise(let name): signals.raise(name)
        case .await(let name): try await signals.wait(for: name, within: .seconds(120))
        }
    }

    // MARK: Receiving

    /// Takes unread bytes as far as a closure wants them.
    /// - Parameter take: Told what there is; says how many bytes it takes and whether it has all it wants.
    private func receive(_ take: ([UInt8]) throws -> (count: Int, isDone: Bool)) async throws {
        while true {
            let isDone = try channel.withUnread { span throws(any Error) -> (consumed: Int, value: Bool) in
                let bytes = OriginChannel.copy(0..<span.count, of: span)
                let (count, isDone) = try take(bytes)
                ledger.transcribe(Array(bytes.prefix(count)), ofConnection: channel.number)
                return (count, isDone)
            }
            if isDone { return }
            guard try await channel.fill() else {
                throw Interruption.surprise("the client ended the connection")
            }
        }
    }

    private func expect(_ expected: [UInt8]) async throws {
        var remaining = expected[...]
        try await receive { bytes in
            let count = min(bytes.count, remaining.count)
            let got = bytes.prefix(count)
            guard got.elementsEqual(remaining.prefix(count)) else {
                throw Interruption.surprise(
                    "expected \(String(decoding: remaining, as: UTF8.self).debugDescription) and got "
                        + String(decoding: bytes.prefix(200), as: UTF8.self).debugDescription)
            }
            remaining = remaining.dropFirst(count)
            return (count, remaining.isEmpty)
        }
    }

    private func readHead() async throws {
        var tail: [UInt8] = []
        let end = Array("\r\n\r\n".utf8)
        try await receive { bytes in
            for (index, byte) in bytes.enumerated() {
                tail.append(byte)
                if tail.count > end.count { tail.removeFirst() }
                if tail == end { return (index + 1, true) }
            }
            return (bytes.count, false)
        }
    }

    private func read(_ count: Int) async throws {
        var remaining = count
        try await receive { bytes in
            let step = min(bytes.count, remaining)
            remaining -= step
            return (step, remaining == 0)
        }
    }

    private func readAll() async throws { repeat { takeAll() } while try await channel.fill() }

    private func takeAll() {
        channel.withUnread { span in
            ledger.transcribe(OriginChannel.copy(0..<span.count, of: span), ofConnection: channel.number)
            return (span.count, ())
        }
    }

    private func awaitClose() async {
        do {
            try await readAll()
        } catch {
            // Closed by a reset.
            return
        }
    }

    // MARK: Sending

    private func send(_ bytes: [UInt8], size: Int, _ interval: Duration) async throws {
        var start = 0
        while start < bytes.count {
            if start > 0, interval > .zero { try await Task.sleep(for: interval) }
            let end = min(bytes.count, start + size)
            try await channel.send(Array(bytes[start..<end]))
            start = end
        }
    }

    private func sendPattern(_ count: UInt64) async throws {
        var done: UInt64 = 0
        while done < count {
            let step = Int(min(count - done, UInt64(TestPattern.stretchLimit)))
            try await channel.send(TestPattern.bytes(from: done, count: step))
            done += UInt64(step)
        }
    }

    private func sendEndlessly(_ bytes: [UInt8]) async {
        if bytes.isEmpty { return }
        do throws(TransportError) {
            while true {
                try await channel.send(bytes)
                // A client that always takes more would leave nobody else a turn.
                await Task.yield()
            }
        } catch {
            // The client has had enough.
            return
        }
    }

    // MARK: Waiting

    /// Waits for the client's end without taking more than a little of what it sends, so that its writes
    /// stall too.
    private func stall() async {
        let departure = OneShot<Void>()
        channel.watchForDeparture { departure.fulfil(()) }
        defer { channel.endWatch() }
        guard case .success(let loop) = EventLoop.shared else { return }
        _ = await departure.waitUnlessCancelled(until: .distantFuture, on: loop)
    }
}

/// Named events between a test and its origin, so that both keep an order without sleeping.
///
/// A signal stays raised: who waits for it later returns at once.
public final class OriginSignals: Sendable {
    private struct State {
        var raised: Set<String> = []
        var waiters: [String: [OneShot<Void>]] = [:]
    }

    private let state = Mutex(State())

    /// No signal is raised.
    package init() {}

    /// Raises a signal and resumes everyone who waits for it.
    public func raise(_ name: String) {
        let waiters = state.withLock { state in
            state.raised.insert(name)
            return state.waiters.removeValue(forKey: name) ?? []
        }
        for waiter in waiters { waiter.fulfil(()) }
    }

    /// Whether a signal was raised.
    public func isRaised(_ name: String) -> Bool { state.withLock { $0.raised.contains(name) } }

    /// Waits for a signal.
    /// - Throws: ``OriginError/timedOut(waitingFor:)`` after the limit, `CancellationError`.
    public func wait(for name: String, within limit: Duration = .seconds(120)) async throws {
        let event = OneShot<Void>()
        let isRaised = state.withLock { state in
            if state.raised.contains(name) { return true }
            state.waiters[name, default: []].append(event)
            return false
        }
        if isRaised { return }
        defer { state.withLock { $0.waiters[name]?.removeAll { $0 === event } } }
        guard try await event.isFulfilled(within: limit) else {
            throw OriginError.timedOut(waitingFor: "the signal \(name)")
        }
    }
}
