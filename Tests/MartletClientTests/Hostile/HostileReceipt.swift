import MartletCore

/// What a call delivered, and how it ended.
struct HostileReceipt: Sendable {
    var fields = HTTPFields()
    var body: [UInt8] = []
    var trailers: HTTPFields?
    var interim: [HTTPResponse] = []
    /// The error it ended with.
    var error: HTTPError?
    /// An error of another type, which no call may throw here.
    var strangeError: String?

    var text: String { String(decoding: body, as: UTF8.self) }

    /// Whether anything the attacker meant to slip in was delivered.
    var isPoisoned: Bool {
        text.contains("EVIL")
            || (Array(fields) + Array(trailers ?? HTTPFields())).contains {
                $0.name.rawName.contains("EVIL") || $0.value.contains("EVIL")
            }
    }
}
