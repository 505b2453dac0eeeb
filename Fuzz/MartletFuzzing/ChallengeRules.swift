import MartletCredentials
import MartletCore
import MartletWire

/// The properties of every field with challenges, valid or not.
enum ChallengeRules {
    /// - Throws: The first violated property.
    static func check(_ field: ArraySlice<UInt8>) throws(FuzzFinding) {
        let result = ChallengeParser.challenges(in: [field])
        for error in result.errors {
            try require((0...field.count).contains(error.position), "\(error) of \(field.count) bytes")
        }
        let isBounded =
            result.challenges.count <= ChallengeParser.challengeLimit
            && result.errors.count <= ChallengeParser.errorLimit
        try require(isBounded, "\(result.challenges.count) challenges, \(result.errors.count) errors")
        var written: [UInt8] = []
        for challenge in result.challenges {
            try check(challenge)
            if !written.isEmpty { written += ", ".utf8 }
            written += text(of: challenge)
        }
        let again = ChallengeParser.challenges(in: [written[...]])
        try require(
            again.challenges == result.challenges && again.errors.isEmpty,
            "\(result.challenges) reads back as \(again.challenges)")
        let information = ChallengeParser.parameters(in: [field])
        try require(
            information.parameters.isEmpty || information.errors.isEmpty,
            "\(information.parameters) in spite of \(information.errors)")
    }

    private static func check(_ challenge: HTTPChallenge) throws(FuzzFinding) {
        let scheme = challenge.scheme
        try require(!scheme.isEmpty && scheme.utf8.allSatisfy(ByteClass.isToken), "scheme \(scheme)")
        try require(
            challenge.token68 == nil || challenge.parameters.isEmpty,
            "a token and parameters: \(challenge)")
        try require(
            challenge.parameters.count <= ChallengeParser.parameterLimit,
            "\(challenge.parameters.count) parameters")
        try require(
            Set(challenge.parameters.map(\.name)).count == challenge.parameters.count, "a parameter twice")
        for parameter in challenge.parameters {
            let name = parameter.name
            try require(
                !name.isEmpty && name.utf8.allSatisfy(ByteClass.isToken) && name == name.lowercased(),
                "parameter \(name)")
            try require(
                parameter.rawValue.count <= ChallengeParser.valueLimit
                    && parameter.rawValue.allSatisfy(ByteClass.isFieldValue), "value \(parameter.rawValue)")
        }
    }

    private static func text(of challenge: HTTPChallenge) -> [UInt8] {
        var text = Array(challenge.scheme.utf8)
        if let token = challenge.token68 { text += " \(token)".utf8 }
        for (index, parameter) in challenge.parameters.enumerated() {
            text += "\(index == 0 ? "" : ",") \(parameter.name)=\"".utf8
            for byte in parameter.rawValue {
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                    text.append(UInt8(ascii: "\\"))
                }
                text.append(byte)
            }
            text.append(UInt8(ascii: "\""))
        }
        return text
    }
}
