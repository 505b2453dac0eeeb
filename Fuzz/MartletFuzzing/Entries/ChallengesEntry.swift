import MartletCore
import MartletWire

extension FuzzEntry {
    /// What servers and proxies say about authentication, and a call that answers them.
    ///
    /// The controls choose the credentials, the party, and whether the body is known. Each line of the payload is a response: a
    /// challenge, or behind `+` what comes with a 200; behind `&` another field of the response before.
    ///
    /// What is read is written as text that reads back equal; a fault points into its field. What the call sends is one field
    /// that the encoder writes and that reads as one challenge would, shows no password but in Basic, and ends: a server
    /// cannot make a call go round for ever. Another origin is sent nothing.
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
