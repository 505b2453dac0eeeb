import MartletWire

/// Reads the challenges of a 401 or 407, and the parameters of `Authentication-Info` (RFC 9110 §11.3, §11.6).
///
/// The grammar is a list within a list, both separated by commas: what begins with a name and an equals sign is a
/// parameter of the challenge before it, and anything else is another challenge. Empty members, white space around the
/// equals sign and around commas are allowed, and fields of the same name are one list. Beyond the grammar, and as other
/// clients do, it takes values without quotes that are no tokens, such as a nonce with slashes, and a blank in place of the
/// comma behind a quoted value.
///
/// A challenge that is malformed is left out, with a fault that says where; those around it count. Time is linear in the
/// input, and the output is bounded.
package struct ChallengeParser {
    /// What came of the fields.
    package struct Result: Sendable {
        /// The challenges that are well-formed, in their order.
        package var challenges: [HTTPChallenge] = []
        /// Why the others are not here; the first ``ChallengeParser/faultLimit``.
        package var faults: [ChallengeError] = []
    }

    /// The most challenges that are read: a server that asks in more ways means harm.
    package static let challengeLimit = 32
    /// The most parameters of one challenge that are read; Digest has ten.
    package static let parameterLimit = 64
    /// The most bytes of one value that are read: what is echoed to the server would not fit its limit on heads.
    package static let valueLimit = 8192
    /// The most faults that are remembered.
    package static let faultLimit = 16

    private let field: String
    /// Whether the members may be challenges, and not parameters alone.
    private let takesSchemes: Bool
    private var result = Result()
    /// The challenge that parameters belong to.
    private var current: HTTPChallenge?
    /// Whether parameters are passed over, because they belong to a challenge that is malformed.
    private var isSkipping = false

    // The field that is read.
    private var fieldIndex = 0
    private var bytes: ArraySlice<UInt8> = []
    private var position = 0

    private init(field: String, takesSchemes: Bool) {
        self.field = field
        self.takesSchemes = takesSchemes
    }

    /// The challenges of fields such as `WWW-Authenticate`.
    ///
    /// - Parameters:
    ///   - values: The values of all fields of that name, in their order.
    ///   - field: The name, for faults.
    package static func challenges(
        in values: some Sequence<ArraySlice<UInt8>>, field: String = "WWW-Authenticate"
    ) -> Result {
        var parser = ChallengeParser(field: field, takesSchemes: true)
        parser.read(values)
        parser.endChallenge()
        return parser.result
    }

    /// The parameters of fields such as `Authentication-Info`, which name no scheme (RFC 9110 §11.6.3).
    ///
    /// - Returns: The parameters; none when one of them is malformed, and then the fault.
    package static func parameters(
        in values: some Sequence<ArraySlice<UInt8>>, field: String = "Authentication-Info"
    ) -> (parameters: [AuthenticationParameter], faults: [ChallengeError]) {
        var parser = ChallengeParser(field: field, takesSchemes: false)
        parser.current = HTTPChallenge(scheme: "")
        parser.read(values)
        let isSound = parser.result.faults.isEmpty
        return (isSound ? parser.current?.parameters ?? [] : [], parser.result.faults)
    }

    // MARK: Lists

    private mutating func read(_ values: some Sequence<ArraySlice<UInt8>>) {
        for (index, value) in values.enumerated() {
            fieldIndex = index
            bytes = value
            position = value.startIndex
            while true {
                skip { ByteClass.isBlank($0) || $0 == UInt8(ascii: ",") }
                guard position < bytes.endIndex, result.challenges.count < ChallengeParser.challengeLimit
                else { break }
                readMember()
            }
            if position < bytes.endIndex { return note(.tooMany, at: position) }
        }
    }

    /// One member of the list: a parameter, or a scheme with what follows it.
    private mutating func readMember() {
        let start = position
        skip(ByteClass.isToken)
        let name = bytes[start..<position]
        let hasBlank = skipBlanks()
        guard !name.isEmpty else { return spoil(.notAToken, at: start) }
        if byte == UInt8(ascii: "=") { return readParameter(name, at: start) }
        guard takesSchemes else { return spoil(.notAToken, at: position) }
        endChallenge()
        isSkipping = false
        guard hasBlank || byte == nil || byte == UInt8(ascii: ",") else {
            return spoil(.notAToken, at: position)
        }
        current = HTTPChallenge(scheme: String(decoding: name, as: UTF8.self))
        guard hasBlank, let next = byte, next != UInt8(ascii: ",") else { return }
        if let token = token68() {
            current?.token68 = String(decoding: token, as: UTF8.self)
            return
        }
        let parameterStart = position
        skip(ByteClass.isToken)
        let parameterName = bytes[parameterStart..<position]
        skipBlanks()
        guard !parameterName.isEmpty, byte == UInt8(ascii: "=") else {
            return spoil(.notAToken, at: parameterName.isEmpty ? parameterStart : position)
        }
        readParameter(parameterName, at: parameterStart)
    }

    /// A token68 up to the next comma; `nil`, and no movement, when there is none.
    private mutating func token68() -> ArraySlice<UInt8>? {
        let start = position
        skip { byte in
            (ByteClass.isToken(byte) && !"!#$%&'*^`|".utf8.contains(byte)) || byte == UInt8(ascii: "/")
        }
        guard position > start else { return nil }
        skip { $0 == UInt8(ascii: "=") }
        let token = bytes[start..<position]
        skipBlanks()
        if byte == nil || byte == UInt8(ascii: ",") { return token }
        position = start
        return nil
    }

    private mutating func endChallenge() {
        if !isSkipping, let current, result.challenges.count < ChallengeParser.challengeLimit {
            result.challenges.append(current)
        }
        current = nil
    }

    // MARK: Parameters

    /// The rest of a parameter, from its equals sign.
    private mutating func readParameter(_ name: ArraySlice<UInt8>, at start: Int) {
        position += 1
        skipBlanks()
        let valueStart = position
        let value: [UInt8]
        if byte == UInt8(ascii: "\"") {
            guard let string = quotedString() else { return }
            value = string
            let hasBlank = skipBlanks()
            guard
                byte == nil || byte == UInt8(ascii: ",") || (hasBlank && byte.map(ByteClass.isToken) == true)
            else { return spoil(.junkBehindValue, at: position) }
        } else {
            skip { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "\"") }
            value = Array(bytes[valueStart..<position])
            skipBlanks()
            guard byte == nil || byte == UInt8(ascii: ",") else {
                return spoil(.junkBehindValue, at: position)
            }
        }
        if isSkipping { return }
        guard value.count <= ChallengeParser.valueLimit else { return spoil(.tooLong, at: valueStart) }
        add(
            AuthenticationParameter(
                name: String(decoding: name.map(ByteClass.lowercased), as: UTF8.self), rawValue: value),
            at: start)
    }

    private mutating func add(_ parameter: AuthenticationParameter, at start: Int) {
        guard var challenge = current else { return note(.parameterWithoutScheme, at: start) }
        current = nil
        defer { current = challenge }
        if let token = challenge.token68 {
            // `Digest realm=, nonce="…"` begins as a token does: it is a parameter without a value after all.
            guard token.utf8.last == UInt8(ascii: "="), token.utf8.dropLast().allSatisfy(ByteClass.isToken),
                !token.utf8.dropLast().contains(UInt8(ascii: "="))
            else { return note(.parameterBesideToken, at: start) }
            challenge.token68 = nil
            challenge.parameters = [
                AuthenticationParameter(name: token.dropLast().lowercased(), rawValue: [])
            ]
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

    /// What a quoted string stands for, the cursor then behind it; `nil` after a fault, with the challenge given up.
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
                spoil(.controlByte, at: place)
                return nil
            }
            value.append(content)
        }
        spoil(.unterminatedString, at: start)
        return nil
    }

    // MARK: Faults

    /// Gives up the challenge that is read, and moves to the next comma outside quotes.
    private mutating func spoil(_ code: ChallengeError.Code, at place: Int) {
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
        guard result.faults.count < ChallengeParser.faultLimit else { return }
        result.faults.append(
            ChallengeError(
                field: field, fieldIndex: fieldIndex, position: place - bytes.startIndex, code: code))
    }

    // MARK: The cursor

    private var byte: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) {
        while position < bytes.endIndex, isSkipped(bytes[position]) { position += 1 }
    }

    /// - Returns: Whether there was a blank.
    @discardableResult
    private mutating func skipBlanks() -> Bool {
        let start = position
        skip(ByteClass.isBlank)
        return position > start
    }
}
