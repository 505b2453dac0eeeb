import MartletCredentials
import MartletURL
import MartletAuthentication
import MartletCore
import MartletWire

/// A call whose server sends generated challenges.
struct ChallengedCall {
    private static let password = "hunter2-Hunter2"
    private static let attemptLimit = 3

    private var machine: AuthenticationMachine
    private let request: AuthenticatedRequest
    private let elsewhere: AuthenticatedRequest
    private let handed: Credentials
    private let mayBeBasic: Bool
    private var wasHanded = false

    /// Creates the call that the controls describe.
    init(_ input: FuzzInput) throws(FuzzFinding) {
        let password = ChallengedCall.password
        let user = input.isSet(0, at: 1) ? "J\u{E4}s\u{F8}n \"D\\oe\"" : "jane"
        let kind = input[0] % 4
        let credentials: Credentials =
            switch kind {
            case 0: .any(user: user, password: password)
            case 1: .digest(user: user, password: password)
            case 2: .basic(user: user, password: password)
            default: .bearer("token")
            }
        handed = .any(user: user, password: password)
        let hasHandler = input.isSet(1, at: 1)
        let handler: AuthenticationSettings.Handler = { _ in nil }
        mayBeBasic = kind != 1 || hasHandler
        let settings = AuthenticationSettings(
            credentials: credentials, attemptLimit: ChallengedCall.attemptLimit,
            handler: hasHandler ? handler : nil)
        let party: ChallengeSource = input.isSet(2, at: 1) ? .proxy : .origin
        machine = AuthenticationMachine(
            party: party, sources: settings.sources, memory: AuthenticationCache(),
            nonces: ClientNonceSource { Array("cnonce".utf8) })
        guard let url = try? HTTPURL("http://a/x/y?q"), let other = try? HTTPURL("http://b/x/y?q") else {
            throw FuzzFinding("the addresses do not parse")
        }
        let body: AuthenticatedBody = input.isSet(3, at: 1) ? .unknown : .bytes(Array("body".utf8))
        request = AuthenticatedRequest(
            origin: url.origin, method: "PUT", target: url.requestTarget, body: body)
        elsewhere = AuthenticatedRequest(
            origin: other.origin, method: "PUT", target: other.requestTarget, body: body)
    }

    /// Processes the responses until one is final; then changes the origin and returns.
    mutating func run(_ answers: [[ArraySlice<UInt8>]]) throws(FuzzFinding) {
        // Each rejection and each stale nonce can cost two requests, one without credentials and one with them.
        var resendLimit = 2 * (ChallengedCall.attemptLimit + AuthenticationMachine.staleLimit) + 1
        var resendCount = 0
        for answer in answers {
            _ = try prepare(request)
            guard let first = answer.first else { continue }
            if first.first == UInt8(ascii: "+") {
                _ = machine.received(
                    AuthenticationResponse(
                        status: 200, information: [first.dropFirst()] + answer.dropFirst()),
                    to: request)
                resendLimit += 1
            } else if try isResent(answer) {
                resendCount += 1
                try require(resendCount <= resendLimit, "a call never ends")
            }
        }
        try require(try prepare(elsewhere) == nil, "another origin is sent credentials")
        let back = try prepare(request)
        try require(back == nil || wasHanded, "credentials of the call are sent after it has left")
    }

    private mutating func isResent(_ fields: [ArraySlice<UInt8>]) throws(FuzzFinding) -> Bool {
        let answer = AuthenticationResponse(status: machine.party.status, challenges: fields)
        switch machine.received(answer, to: request) {
        case .deliver, .reject, .refresh: return false
        case .resend: return true
        case .ask:
            wasHanded = true
            do throws(CredentialsError) {
                if case .resend = try machine.received(credentials: handed, for: request) { return true }
                return false
            } catch {
                throw FuzzFinding("credentials that can be written are refused: \(error)")
            }
        }
    }

    private mutating func prepare(_ request: AuthenticatedRequest) throws(FuzzFinding) -> AuthorizationValue? {
        let preparation: RequestAuthentication
        do throws(CredentialsError) {
            preparation = try machine.prepare(request)
        } catch {
            throw FuzzFinding("credentials that can be written are refused: \(error)")
        }
        guard case .value(let value) = preparation else { return nil }
        try check(value)
        return value
    }

    private func check(_ value: AuthorizationValue) throws(FuzzFinding) {
        var encoder = RequestEncoder()
        do throws(WireError) {
            try encoder.begin(method: "PUT", target: "/", version: .http11)
            try encoder.field(name: "Authorization", rawValue: value.bytes)
        } catch {
            throw FuzzFinding("what is sent cannot be written: \(error)")
        }
        let read = ChallengeParser.challenges(in: [value.bytes[...]])
        try require(read.challenges.count == 1 && read.errors.isEmpty, "what is sent reads as \(read)")
        guard let sent = read.challenges.first else { return }
        if sent.isScheme("Digest") {
            let text = String(decoding: value.bytes, as: UTF8.self)
            try require(!text.contains(ChallengedCall.password), "the password is sent")
            for name in ["realm", "nonce", "uri", "response"] {
                try require(sent[name] != nil, "a Digest response without \(name)")
            }
            try require(sent["uri"] == request.target, "a response for another target")
        } else {
            try require(
                sent.isScheme("Bearer") || (sent.isScheme("Basic") && mayBeBasic), "\(sent.scheme) is sent")
        }
    }
}
