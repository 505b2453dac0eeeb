import MartletCore
import MartletWire

extension FuzzEntry {
    /// Challenges of servers and proxies, and a call that responds to them.
    ///
    /// The controls select the credentials, the source of the challenge, and whether the body's bytes are known. Each
    /// line of the payload is a response: a challenge, or after `+` the fields of a 200. A line after `&` is another
    /// field of the previous response.
    ///
    /// A parsed field survives writing and parsing, and an error's offset is in its field. The call sends one valid
    /// credentials field that exposes no password except with Basic. The call ends: a server cannot make it loop
    /// forever. Another origin receives no credentials.
    static let challenges = FuzzEntry("challenges") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let lines = input.payload.split(separator: ByteClass.lineFeed, omittingEmptySubsequences: false)
        for line in lines.prefix(8) { try ChallengeRules.check(line.drop { $0 == UInt8(ascii: "+") }) }
        var answers: [[ArraySlice<UInt8>]] = []
        for line in lines.prefix(64) {
            if line.first == UInt8(ascii: "&"), !answers.isEmpty {
                answers[answers.count - 1].append(line.dropFirst())
            } else {
                answers.append([line])
            }
        }
        var call = try ChallengedCall(input)
        try call.run(answers)
    }
}
