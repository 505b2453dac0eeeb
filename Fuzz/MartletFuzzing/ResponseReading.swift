import MartletWire

/// The result of the client machine for a stream of bytes, without parts that depend on how the bytes arrive.
struct ResponseReading: Equatable {
    private(set) var informational: [ResponseHead] = []
    private(set) var head: ResponseHead?
    private(set) var framing: BodyFraming?
    private(set) var body: [UInt8] = []
    private(set) var isComplete = false
    private(set) var trailers: FieldBlock?
    /// The end of the response as an offset; 0 if it did not end.
    private(set) var byteCount = 0
    /// The start of the body as an offset.
    private(set) var bodyStart = 0
    private(set) var error: WireError?
    private(set) var isReusable = false

    /// Reads a response, then ends the stream unless the response was complete before.
    init(
        _ bytes: [UInt8], _ arrivals: Arrivals, _ scene: ResponseScene, isDirect: Bool
    ) throws(FuzzFinding) {
        var machine = ClientMachine(limits: scene.limits)
        machine.startRequest(method: scene.method, version: scene.version)
        machine.requestFinished()
        var position = 0
        do throws(WireError) {
            for end in arrivals where !isComplete {
                try read(bytes, from: &position, to: end, &machine, isDirect)
            }
            if isComplete {
                byteCount = position
                machine.finish(leftoverByteCount: bytes.count - position)
                isReusable = machine.isReusable
            } else {
                take(try machine.receiveEndOfStream(isClean: scene.isCleanEnd), bytes, position)
                if isComplete { byteCount = position }
                isReusable = machine.isReusable
            }
        } catch {
            self.error = error
            isReusable = machine.isReusable
            try ResponseReading.checkStaysFailed(&machine, error)
        }
        if isComplete != machine.isResponseFinished {
            throw FuzzFinding("the machine does not know of the end")
        }
    }

    private mutating func read(
        _ bytes: [UInt8], from position: inout Int, to end: Int, _ machine: inout ClientMachine,
        _ isDirect: Bool
    ) throws(WireError) {
        while !isComplete {
            let direct = Int(clamping: min(machine.directPayloadByteCount, UInt64(end - position)))
            if isDirect, direct > 0 {
                let event = machine.receivedDirectly(direct)
                body += bytes[position..<position + direct]
                position += direct
                if let event { take(event, bytes, position) }
                continue
            }
            let received = try machine.receive(bytes.span.extracting(position..<end))
            take(received.event, bytes, position)
            position += received.consumed
            if case .head = received.event { bodyStart = position }
            if received.event == .needMoreBytes { return }
        }
    }

    private mutating func take(_ event: ClientMachine.Event, _ bytes: [UInt8], _ position: Int) {
        switch event {
        case .needMoreBytes: break
        case .informational(let head): informational.append(head)
        case .head(let head, let framing):
            self.head = head
            self.framing = framing
        case .body(let range): body += bytes[position + range.lowerBound..<position + range.upperBound]
        case .end(let trailers):
            self.trailers = trailers
            isComplete = true
        }
    }

    /// Checks that bytes after an error are never parsed.
    private static func checkStaysFailed(
        _ machine: inout ClientMachine, _ error: WireError
    ) throws(FuzzFinding) {
        let bytes = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        let later: Result<ClientMachine.Received, WireError>
        do throws(WireError) {
            later = .success(try machine.receive(bytes.utf8.span))
        } catch {
            later = .failure(error)
        }
        try require(later == .failure(error), "after \(error) comes \(later)")
    }
}
