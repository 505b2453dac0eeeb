import MartletWire

/// A parser of the challenges of a 401 or 407, and of the parameters of `Authentication-Info` (RFC 9110 §11.3, §11.6).
///
/// Commas separate the challenges as well as the parameters of a challenge: a name with an equals sign is a parameter
/// of the preceding challenge, and anything else starts another challenge. Empty members, and white space around equals
/// signs and commas, are allowed. Fields of the same name are one list. Like other clients, the parser also accepts
/// unquoted values that are not tokens, such as a nonce with slashes, and a blank as the comma after a quoted value.
///
/// A malformed challenge is omitted, with an error that contains its position; the others are used. Parsing takes
/// linear time, and the output is limited.
package struct ChallengeParser {
    /// The result of parsing the fields.
    package struct Result: Sendable {
        /// The well-formed challenges, in the order received.
        package var challenges: [HTTPChallenge] = []
        /// The errors of malformed challenges; at most the first ``ChallengeParser/errorLimit``.
        package var errors: [ChallengeError] = []
    }

    /// The maximum number of challenges.
    package static let challengeLimit = 32
    /// The maximum number of parameters of one challenge; Digest has ten.
    package static let parameterLimit = 64
    /// The maximum size of a value in bytes: the client sends some values back, and servers limit the size of heads.
    package static let valueLimit = 8192
    /// The maximum number of errors that are stored.
    package static let errorLimit = 16

    private let field: String
    private var result = Result()
    /// The challenge that the next parameters belong to.
    private var current: HTTPChallenge?
    /// Whether parameters are ignored, because they belong to a malformed challenge.
    private var isSkipping = false

    // The position of the field being parsed.
    private var fieldIndex = 0
    private var bytes: ArraySlice<UInt8> = []
    private var position = 0

    /// Returns the challenges of fields such as `WWW-Authenticate`.
    /// - Parameters:
    ///   - values: The values of all fields of that name, in order.
    ///   - field: The name of the field, for errors.
    package static func challenges(in values: some Sequence<ArraySlice<UInt8>>, field: String = "WWW-Authenticate")
        -> Result
    {
        var parser = ChallengeParser(field: field)
        parser.read(values, takesSchemes: true)
        parser.endChallenge()
        return parser.result
    }

    /// Returns the parameters of fields such as `Authentication-Info`, which name no scheme (RFC 9110 §11.6.3).
    /// - Returns: The parameters, and the errors; after an error, no parameters.
    package static func parameters(in values: some Sequence<ArraySlice<UInt8>>, field: String = "Authentication-Info")
        -> (parameters: [AuthenticationParameter], errors: [ChallengeError])
    {
        var parser = ChallengeParser(field: field)
        parser.current = HTTPChallenge(scheme: "")
        parser.read(values, takesSchemes: false)
        let isSound = parser.result.errors.isEmpty
        return (isSound ? parser.current?.parameters ?? [] : [], parser.result.errors)
    }

    // MARK: Lists

    private mutating func read(_ values: some Sequence<ArraySlice<UInt8>>, takesSchemes: Bool) {
        for (index, value) in values.enumerated() {
            fieldIndex = index
            bytes = value
            position = value.startIndex
            while true {
                skip { ByteClass.isBlank($0) || $0 == UInt8(ascii: ",") }
                guard position < bytes.endIndex, result.challenges.count < ChallengeParser.challengeLimit else { break }
                readMember(takesSchemes: takesSchemes)
            }
            if position < bytes.endIndex { return note(.tooMany, at: position) }
        }
    }

    /// Parses one member of the list: a parameter, or a scheme with its token or its first parameter.
    private mutating func readMember(takesSchemes: Bool) {
        let start = position
        skip(ByteClass.isToken)
        let name = bytes[start..<position]
        let hasBlank = skipBlanks()
        guard !name.isEmpty else { return invalidate(.notAToken, at: start) }
        if byte == UInt8(ascii: "=") { return readParameter(name, at: start) }
        guard takesSchemes else { return invalidate(.notAToken, at: position) }
        endChallenge()
        isSkipping = false
        guard hasBlank || isAtEndOfMember else { return invalidate(.notAToken, at: position) }
        current = HTTPChallenge(scheme: String(decoding: name, as: UTF8.self))
        guard !isAtEndOfMember else { return }
        if let token = token68() {
            current?.token68 = String(decoding: token, as: UTF8.self)
        } else {
            readMember(takesSchemes: false)
        }
    }

    /// Returns a token68 up to the next comma; `nil`, without moving the cursor, if no token68 follows.
    private mutating func token68() -> ArraySlice<UInt8>? {
        let start = position
        skip(ChallengeParser.isToken68)
        guard position > start else { return nil }
        skip { $0 == UInt8(ascii: "=") }
        let token = bytes[start..<position]
        skipBlanks()
        if isAtEndOfMember { return token }
        position = start
        return nil
    }

    /// Whether a byte may be in a token68 before its equals signs: a letter, a digit or one of `-._~+/`.
    static func isToken68(_ byte: UInt8) -> Bool {
        (ByteClass.isToken(byte) && !"!#$%&'*^`|".utf8.contains(byte)) || byte == UInt8(ascii: "/")
    }

    private mutating func endChallenge() {
        if !isSkipping, let current, result.challenges.count < ChallengeParser.challengeLimit {
            result.challenges.append(current)
        }
        current = nil
    }

    // MARK: Parameters

    /// Parses the rest of a parameter, from its equals sign.
    private mutating func readParameter(_ name: ArraySlice<UInt8>, at start: Int) {
        position += 1
        skipBlanks()
        let valueStart = position
        let isQuoted = byte == UInt8(ascii: "\"")
        let value: [UInt8]
        if isQuoted {
            guard let string = quotedString() else { return }
            value = string
        } else {
            skip { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "\"") }
            value = Array(bytes[valueStart..<position])
        }
        let hasBlank = skipBlanks()
        guard isAtEndOfMember || (isQuoted && hasBlank && byte.map(ByteClass.isToken) == true) else {
            return invalidate(.unexpectedTextAfterValue, at: position)
        }
        if isSkipping { return }
        guard value.count <= ChallengeParser.valueLimit else { return invalidate(.tooLong, at: valueStart) }
        add(
            AuthenticationParameter(
                name: String(decoding: name.map(ByteClass.lowercased), as: UTF8.self), rawValue: value), at: start)
    }

    private mutating func add(_ parameter: AuthenticationParameter, at start: Int) {
        guard var challenge = current else { return note(.parameterWithoutScheme, at: start) }
        current = nil
        defer { current = challenge }
        if let token = challenge.token68 {
            // `Digest realm=, nonce="…"` begins like a token: it is a parameter without a value.
            guard token.utf8.last == UInt8(ascii: "="), token.utf8.dropLast().allSatisfy(ByteClass.isToken),
                !token.utf8.dropLast().contains(UInt8(ascii: "="))
            else { return note(.parameterAfterToken68, at: start) }
            challenge.token68 = nil
            challenge.parameters = [AuthenticationParameter(name: token.dropLast().lowercased(), rawValue: [])]
        }
        if let earlier = challenge.parameters.first(where: { $0.name == parameter.name }) {
            guard earlier != parameter else { return }
            note(.repeatedParameter, at: start)
            isSkipping = true
        } else if challenge.parameters.count < ChallengeParser.parameterLimit {
            challenge.parameters.append(parameter)
        } else {
            note(.tooMany, at: start)
            isSkipping = true
        }
    }

    /// Returns the content of a quoted string and moves past it; `nil` after an error, which discards the challenge.
    private mutating func quotedString() -> [UInt8]? {
        let start = position
        position += 1
        var value: [UInt8] = []
        while let next = byte {
            position += 1
            if next == UInt8(ascii: "\"") { return value }
            var content = next
            if next == UInt8(ascii: "\\") {
                guard let escaped = byte else { break }
                position += 1
                content = escaped
            }
            guard ByteClass.isFieldValue(content) else {
                let place = position - 1
                position = start
                skipQuoted()
                invalidate(.controlByte, at: place)
                return nil
            }
            value.append(content)
        }
        invalidate(.unterminatedString, at: start)
        return nil
    }

    // MARK: Errors

    /// Discards the current challenge, and moves to the next comma outside quotes.
    private mutating func invalidate(_ code: ChallengeError.Code, at place: Int) {
        if !isSkipping { note(code, at: place) }
        isSkipping = true
        while let next = byte, next != UInt8(ascii: ",") {
            if next == UInt8(ascii: "\"") { skipQuoted() } else { position += 1 }
        }
    }

    private mutating func skipQuoted() {
        position += 1
        while let next = byte {
            position += 1
            if next == UInt8(ascii: "\"") { return }
            if next == UInt8(ascii: "\\"), byte != nil { position += 1 }
        }
    }

    private mutating func note(_ code: ChallengeError.Code, at place: Int) {
        guard result.errors.count < ChallengeParser.errorLimit else { return }
        result.errors.append(
            ChallengeError(field: field, fieldIndex: fieldIndex, position: place - bytes.startIndex, code: code))
    }

    // MARK: The cursor

    private var byte: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    private var isAtEndOfMember: Bool { byte == nil || byte == UInt8(ascii: ",") }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) {
        while position < bytes.endIndex, isSkipped(bytes[position]) { position += 1 }
    }

    /// Skips spaces and tabs.
    /// - Returns: Whether a blank was skipped.
    @discardableResult private mutating func skipBlanks() -> Bool {
        let start = position
        skip(ByteClass.isBlank)
        return position > start
    }
}
