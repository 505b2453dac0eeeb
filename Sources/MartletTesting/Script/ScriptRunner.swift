import MartletTransport
import MartletWire

struct ScriptRunner: ~Copyable, Sendable {
    private let channel: OriginChannel
    private let recorder: OriginRecorder
    private let signals: OriginSignals
    private var requests: ScriptRequestParser

    init(channel: OriginChannel, recorder: OriginRecorder, signals: OriginSignals, peer: OriginPeer) {
        (self.channel, self.recorder, self.signals) = (channel, recorder, signals)
        requests = ScriptRequestParser(recorder: recorder, peer: peer)
    }

    /// An unexpected action of the client, which ends the script before its last step.
    private struct ScriptError: Error, CustomStringConvertible { let description: String }

    /// Plays the script; the connection is closed afterwards.
    mutating func run(_ script: ServerScript) async {
        recorder.beginTranscript(ofConnection: channel.number)
        for (index, step) in script.steps.enumerated() {
            do { try await play(step) } catch {
                recorder.note("connection \(channel.number), step \(index + 1): \(error)")
                return error is ScriptError ? channel.stream.reset() : channel.stream.close()
            }
        }
        channel.stream.close()
    }

    private mutating func play(_ step: ScriptStep) async throws {
        switch step {
        case .expect(let bytes): try await expect(bytes)
        case .expectRequestHead: try await readHead()
        case .readBody(let count): try await read(max(0, count))
        case .readAll: try await readAll()
        case .send(let bytes): try await channel.send(bytes)
        case .sendPieces(let bytes, let size): try await send(bytes, size: max(1, size), .zero)
        case .drip(let bytes, let interval): try await send(bytes, size: 1, interval)
        case .sendPattern(let count):
            for piece in TestPattern.stretches(from: 0, count: count) { try await channel.send(Array(piece)) }
        case .sendEndlessly(let bytes): await sendEndlessly(bytes)
        case .pause(let duration): try await Task.sleep(for: duration)
        case .stall: await stall()
        case .awaitClose:
            // A reset closes the connection, too.
            try? await readAll()
        case .close: channel.stream.close()
        case .closeWithoutNotify: channel.cut()
        case .reset: channel.stream.reset()
        case .shutdownWriting: channel.stream.shutdownWriting()
        case .signal(let name): signals.raise(name)
        case .await(let name): try await signals.wait(for: name, within: .seconds(120))
        }
    }

    /// Passes unread bytes to a closure until it is done.
    /// - Parameter take: Returns the number of bytes that it consumes, and whether it is done.
    private mutating func receive(_ take: ([UInt8]) throws -> (count: Int, isDone: Bool)) async throws {
        while try !takeUnread(take) {
            guard try await channel.fill() else { throw ScriptError(description: "the client ended the connection") }
        }
    }

    private mutating func takeUnread(_ take: ([UInt8]) throws -> (count: Int, isDone: Bool)) throws -> Bool {
        let (taken, isDone) = try channel.withUnread {
            span throws(any Error) -> (consumed: Int, value: ([UInt8], Bool)) in
            let bytes = OriginChannel.copy(0..<span.count, of: span)
            let (count, isDone) = try take(bytes)
            return (count, (Array(bytes.prefix(count)), isDone))
        }
        requests.feed(taken)
        recorder.transcribe(taken, ofConnection: channel.number)
        return isDone
    }

    private mutating func expect(_ expected: [UInt8]) async throws {
        var remaining = expected[...]
        try await receive { bytes in
            let count = min(bytes.count, remaining.count)
            guard bytes.prefix(count).elementsEqual(remaining.prefix(count)) else {
                throw ScriptError(
                    description: "expected \(String(decoding: remaining, as: UTF8.self).debugDescription) and got "
                        + String(decoding: bytes.prefix(200), as: UTF8.self).debugDescription)
            }
            remaining = remaining.dropFirst(count)
            return (count, remaining.isEmpty)
        }
    }

    private mutating func readHead() async throws {
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

    private mutating func read(_ count: Int) async throws {
        var remaining = count
        try await receive { bytes in
            let step = min(bytes.count, remaining)
            remaining -= step
            return (step, remaining == 0)
        }
    }

    private mutating func readAll() async throws {
        repeat { _ = try takeUnread { ($0.count, false) } } while try await channel.fill()
    }

    private func send(_ bytes: [UInt8], size: Int, _ interval: Duration) async throws {
        for (index, piece) in bytes.pieces(of: size).enumerated() {
            if index > 0, interval > .zero { try await Task.sleep(for: interval) }
            try await channel.send(piece)
        }
    }

    private func sendEndlessly(_ bytes: [UInt8]) async {
        if bytes.isEmpty { return }
        // Large pieces make this a flood of bytes instead of a flood of calls, which a sanitizer would slow down.
        let piece = Array(repeatElement(bytes, count: max(1, 8192 / bytes.count)).joined())
        do throws(TransportError) {
            while true {
                try await channel.send(piece)
                // Without this, a client that always accepts more would block other tasks.
                await Task.yield()
            }
        } catch { return }
    }

    /// Waits until the client disconnects. Few of its bytes are read, so that its writes stall, too.
    private func stall() async {
        let departure = OneShot<Void>()
        channel.observeDeparture { departure.fulfill(()) }
        defer { channel.stopObserving() }
        guard case .success(let loop) = EventLoop.shared else { return }
        _ = await departure.waitUnlessCancelled(until: .distantFuture, on: loop)
    }
}

/// Finds the requests in the bytes that a script reads, and records them. It stops at bytes that are not HTTP.
private struct ScriptRequestParser: ~Copyable, Sendable {
    private let recorder: OriginRecorder
    private let peer: OriginPeer
    private var machine = ServerMachine()
    private var unread: [UInt8] = []
    private var number = 0
    private var record = 0
    private var hasFailed = false

    init(recorder: OriginRecorder, peer: OriginPeer) { (self.recorder, self.peer) = (recorder, peer) }

    mutating func feed(_ bytes: [UInt8]) {
        if hasFailed { return }
        let bytes = unread + bytes
        var offset = 0
        do throws(WireError) {
            while true {
                let rest = bytes.span.extracting(offset...)
                let received = try machine.receive(rest)
                switch received.event {
                case .head(let head, _):
                    number += 1
                    record = recorder.record(RecordedRequest(head, number: number, connection: peer))
                case .body(let range): recorder.record(OriginChannel.copy(range, of: rest), of: record)
                case .end: machine.nextRequest()
                case .needMoreBytes:
                    unread = Array(bytes[(offset + received.consumed)...])
                    return
                }
                offset += received.consumed
            }
        } catch { hasFailed = true }
    }
}
