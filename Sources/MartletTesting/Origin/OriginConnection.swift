import MartletTransport
import MartletWire

/// Serves HTTP on one connection of the test origin, until either side ends it.
struct OriginConnection: Sendable {
    private let channel: OriginChannel
    private let handler: OriginHandler
    private let limits: OriginLimits
    private let ledger: OriginLedger
    private let clock: OriginClock
    private let peer: OriginPeer
    private let reader: RequestReader

    /// How a connection ends.
    private enum Ending {
        case close
        case linger
        case fault(OriginFault.Kind)
    }

    /// - Parameter departure: Called when the client leaves while a handler runs.
    init(
        channel: OriginChannel, handler: OriginHandler, limits: OriginLimits, ledger: OriginLedger,
        clock: OriginClock, peer: OriginPeer, departure: @escaping @Sendable () -> Void
    ) {
        self.channel = channel
        self.handler = handler
        self.limits = limits
        self.ledger = ledger
        self.clock = clock
        self.peer = peer
        reader = RequestReader(channel: channel) { [weak channel] in channel?.watchForDeparture(departure) }
        self.departure = departure
    }

    private let departure: @Sendable () -> Void

    /// Serves request after request; the channel is closed afterwards.
    func serve() async {
        var number = 0
        while true {
            number += 1
            switch await serveRequest(number) {
            case nil: continue
            case .close: return channel.close()
            case .linger: return await channel.closeLingering()
            case .fault(.close): return channel.close()
            case .fault(.cut): return channel.cut()
            case .fault(.reset): return channel.reset()
            case .fault(.stall):
                await channel.awaitEnd()
                return channel.close()
            }
        }
    }

    /// Serves one request.
    /// - Returns: How the connection ends, or `nil` when it goes on.
    private func serveRequest(_ number: Int) async -> Ending? {
        let head: RequestReader.Head
        do {
            guard let next = try await reader.nextHead() else { return .close }
            head = next
        } catch let error as WireError {
            ledger.note("connection \(peer.number): \(error)")
            return await refuse(error)
        } catch {
            return .close
        }
        let request = request(of: head, number: number)
        ledger.record(
            RecordedRequest(
                connectionNumber: peer.number, requestNumber: number, method: request.method,
                target: request.target, version: request.version, fields: request.fields))
        if reader.isComplete { channel.watchForDeparture(departure) }
        do {
            let response = try await answer(to: request)
            endAnswering()
            let persists = try await send(response, to: head, number: number)
            ledger.responded()
            guard persists else { return needsLingering ? .linger : .close }
            return await reader.drain(limit: limits.unreadBodyLimit) ? nil : .linger
        } catch let fault as OriginFault {
            endAnswering()
            return .fault(fault.kind)
        } catch {
            endAnswering()
            if !(error is CancellationError) { ledger.note("connection \(peer.number): \(error)") }
            return .fault(.cut)
        }
    }

    private func endAnswering() {
        reader.answered()
        channel.endWatch()
    }

    private var needsLingering: Bool { !reader.isComplete || channel.hasUnread }

    private func request(of head: RequestReader.Head, number: Int) -> OriginRequest {
        let length: UInt64? =
            switch head.framing {
            case .none, .untilClose: 0
            case .length(let length): length
            case .chunked: nil
            }
        let body = OriginRequestBody(reader: reader, serial: head.serial, declaredLength: length)
        return OriginRequest(head: head.head, number: number, connection: peer, body: body) {
            [channel, reader] interim in
            guard head.head.version == .http11 else { return }
            try await OriginConnection.send(interim, on: channel, reader: reader)
        }
    }

    private static func send(
        _ interim: InterimResponse, on channel: OriginChannel, reader: RequestReader
    ) async throws {
        let bytes: [UInt8]
        do throws(WireError) {
            bytes = try ResponsePlan.head(of: interim)
        } catch {
            throw OriginError.malformedRequest("\(error)")
        }
        if interim.status == 100 { reader.continueWasSent() }
        do throws(TransportError) {
            try await channel.send(bytes)
        } catch {
            throw OriginError.disconnected("\(error)")
        }
    }

    /// Runs the handler. What it throws becomes a 500, except faults and its being cancelled.
    private func answer(to request: OriginRequest) async throws -> OriginResponse {
        let response: OriginResponse
        do {
            response = try await handler.respond(to: request)
        } catch let fault as OriginFault {
            throw fault
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            ledger.note("\(request.method) \(request.target): \(error)")
            if case OriginError.disconnected = error { throw error }
            let isClientsFault = if case OriginError.malformedRequest = error { true } else { false }
            return .text("\(error)\n", status: isClientsFault ? 400 : 500).with {
                $0.closesConnection = isClientsFault
            }
        }
        if response.delay > .zero { try await Task.sleep(for: response.delay) }
        if let fault = response.fault, fault.bodyByteCount == nil { throw fault }
        return response
    }

    /// Sends a response.
    /// - Returns: Whether the connection lives on.
    private func send(
        _ response: OriginResponse, to head: RequestReader.Head, number: Int
    ) async throws -> Bool {
        for interim in response.interim where head.head.version == .http11 {
            try await OriginConnection.send(interim, on: channel, reader: reader)
        }
        var response = response
        let isLast = limits.requestsPerConnection.map { number >= $0 } ?? false
        let request = ResponsePlan.Request(
            method: head.head.method, version: head.head.version,
            mayPersist: reader.persists && !isLast && reader.canDrain(limit: limits.unreadBodyLimit))
        var plan = ResponsePlan(response: response, request: request)
        let bytes: [UInt8]
        do throws(WireError) {
            bytes = try plan.head(of: response, request: request, date: clock.date)
        } catch {
            ledger.note("\(head.head.method) \(head.head.target): the response cannot be sent: \(error)")
            response = .text("\(error)\n", status: 500)
            plan = ResponsePlan(response: response, request: request)
            bytes = try plan.head(of: response, request: request, date: clock.date)
        }
        let writer = OriginBodyWriter(
            channel: channel, head: bytes, framing: plan.framing, pacing: response.pacing,
            fault: response.fault)
        if plan.sendsBody {
            if response.pacing != nil { try await writer.flush() }
            try await response.body.write(to: writer)
            try await writer.finish(trailers: response.trailers)
        } else {
            try await writer.flush()
        }
        return plan.persists
    }

    private func refuse(_ error: WireError) async -> Ending {
        let status =
            switch error.code {
            case .headTooLarge, .lineTooLong, .tooManyLines: 431
            case .unsupportedVersion: 505
            case .truncated: 0
            default: 400
            }
        guard status != 0 else { return .close }
        let request = ResponsePlan.Request(method: "GET", version: .http11, mayPersist: false)
        let response = OriginResponse.text("\(error)\n", status: status)
        let plan = ResponsePlan(response: response, request: request)
        do {
            let head = try plan.head(of: response, request: request, date: clock.date)
            try await channel.send(head + Array("\(error)\n".utf8))
        } catch {
            return .close
        }
        return .linger
    }
}

/// How a response goes onto the wire: decided from it, from its request, and from what the connection allows.
struct ResponsePlan {
    /// What is known of the request.
    struct Request {
        let method: String
        let version: WireVersion
        /// Whether the client, and what is left of the request, allow another request.
        let mayPersist: Bool
    }

    /// Whether the body is sent at all.
    let sendsBody: Bool
    /// How the body is delimited.
    let framing: OriginBodyWriter.Framing
    /// Whether the connection lives on.
    let persists: Bool
    private let declared: BodyFraming

    init(response: OriginResponse, request: Request) {
        let allowsBody =
            request.method != "HEAD" && response.status >= 200 && response.status != 204
            && response.status != 304
        let declaresFraming = response.status >= 200 && response.status != 204 && response.status != 304
        let length = response.body.length
        sendsBody = allowsBody
        var isDelimited = true
        if response.fields.contains("Content-Length") || response.fields.contains("Transfer-Encoding") {
            declared = .none
            framing = .raw
            let matches = length.map { "\($0)" } == response.fields["Content-Length"]
            isDelimited = !allowsBody || matches || response.fields.contains("Transfer-Encoding")
        } else {
            switch (response.framing, length) {
            case (.automatic, .some(let length)):
                declared = declaresFraming ? .length(length) : .none
                framing = .length(length)
            case (.chunked(let size), _) where request.version == .http11 && !response.claimsHTTP10:
                declared = declaresFraming ? .chunked : .none
                framing = .chunked(size: size)
            case (.automatic, nil) where request.version == .http11 && !response.claimsHTTP10:
                declared = declaresFraming ? .chunked : .none
                framing = .chunked(size: nil)
            default:
                declared = .untilClose
                framing = .raw
                isDelimited = !allowsBody
            }
        }
        persists = request.mayPersist && !response.closesConnection && isDelimited
    }

    /// The bytes of the head.
    /// - Parameter date: The value of the Date field.
    /// - Throws: for a status, phrase or field that cannot be sent.
    func head(of response: OriginResponse, request: Request, date: String) throws(WireError) -> [UInt8] {
        var encoder = ResponseEncoder()
        try encoder.begin(
            status: response.status, reason: response.reason ?? StatusPhrase.of(response.status),
            version: response.claimsHTTP10 ? .http10 : .http11)
        if !response.fields.contains("Date") { try encoder.field(name: "Date", value: date) }
        for (name, value) in response.fields { try encoder.field(name: name, value: value) }
        try encoder.framing(declared)
        if !response.fields.contains("Connection") {
            if !persists {
                try encoder.field(name: "Connection", value: "close")
            } else if request.version == .http10 {
                try encoder.field(name: "Connection", value: "keep-alive")
            }
        }
        encoder.end()
        return encoder.bytes
    }

    /// The bytes of an interim response.
    static func head(of response: InterimResponse) throws(WireError) -> [UInt8] {
        var encoder = ResponseEncoder()
        try encoder.begin(status: response.status, reason: StatusPhrase.of(response.status))
        for (name, value) in response.fields { try encoder.field(name: name, value: value) }
        encoder.end()
        return encoder.bytes
    }
}
