public import MartletCore

/// The user names and passwords by host in a netrc file, such as `~/.netrc` of ftp, curl and git. Martlet reads no such
/// file by default. Neither ``description`` nor a mirror contains secrets.
public struct NetrcFile: Hashable, Sendable {
    /// An unsafe property of a file. The file is still read, as in curl.
    public enum Warning: String, Hashable, Sendable {
        /// Users other than the owner may read the file.
        case isReadableByOthers
        /// Users other than the owner may write to the file.
        case isWritableByOthers
        /// The file belongs to another user.
        case isOwnedByAnotherUser
    }

    /// The maximum size of a file in bytes: 1 MiB.
    public static let byteLimit = 1 << 20
    /// The entries in the order of the file.
    public let entries: [NetrcEntry]
    /// The unsafe properties of the file; empty for a text.
    public private(set) var warnings: Set<Warning> = []

    /// Parses a text.
    /// - Throws: The error and its line.
    public init(_ text: String) throws(NetrcError) { try self.init(bytes: Array(text.utf8)) }

    /// Parses the bytes of a file.
    /// - Throws: The error and its line.
    public init(bytes: [UInt8]) throws(NetrcError) {
        var parser = NetrcParser(bytes)
        entries = try parser.entries()
    }

    /// Reads a file, on a thread for blocking work.
    /// - Throws: ``StorageError`` if it cannot be read; ``NetrcError`` if it cannot be parsed.
    public static func load(_ path: some FilePathConvertible) async throws -> NetrcFile {
        let path = path.filePath.string
        let (bytes, warnings) = try await BlockingThreadPool.shared.run { () throws(StorageError) in
            let file = try FileReader(path: path)
            let bytes = try file.read(at: 0, limit: Int(min(file.byteCount, UInt64(byteLimit) + 1)))
            let access = file.access
            let warnings: [Warning?] = [
                access.isReadableByOthers ? .isReadableByOthers : nil,
                access.isWritableByOthers ? .isWritableByOthers : nil,
                access.isOwnedByThisUser ? nil : .isOwnedByAnotherUser,
            ]
            return (bytes, warnings)
        }
        var file = try NetrcFile(bytes: bytes)
        file.warnings = Set(warnings.compactMap(\.self))
        return file
    }

    /// Returns the entry for a host: the first in the file for this host or for all hosts. An entry with a password
    /// takes precedence over one with only a name.
    /// - Parameters:
    ///   - host: The host, in any case; an IPv6 address without brackets.
    ///   - login: The user name; entries with another name are ignored. `nil` for any name.
    public func entry(forHost host: String, login: String? = nil) -> NetrcEntry? {
        let host = host.lowercased()
        let fitting = entries.lazy.filter { entry in entry.machine.map { $0.lowercased() == host } ?? true }
        if let login {
            return fitting.first { $0.password != nil && ($0.login ?? login) == login }
                ?? fitting.first { $0.login == login }
        }
        return fitting.first { $0.password != nil } ?? fitting.first { $0.login != nil }
    }
}

extension NetrcFile: CustomStringConvertible, CustomReflectable {
    /// The number of entries.
    public var description: String { "netrc of \(entries.count) entries" }
    /// The mirror, with the same content as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// The entry of one machine in a netrc file.
public struct NetrcEntry: Hashable, Sendable {
    /// The host; `nil` for `default`, which matches all hosts.
    public let machine: String?
    /// The user name; `nil` if it is missing.
    public internal(set) var login: String?
    /// The password; `nil` if it is missing.
    public internal(set) var password: String?
    /// The additional password (`account`) of some FTP servers; HTTP does not use it.
    public internal(set) var account: String?
    /// The line at which the entry starts, from 1.
    public let line: Int
}

extension NetrcEntry: CustomStringConvertible, CustomReflectable {
    /// The machine and the user name, without the password.
    public var description: String { "\(machine.map { "machine \($0)" } ?? "default") login \(login ?? "-")" }
    /// The mirror, with the same content as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// The error of a netrc file that cannot be parsed. It does not contain the file's text.
public struct NetrcError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line of the error, from 1.
    public let line: Int
    /// The kind of error.
    public let code: Code

    /// The kind of error.
    public enum Code: String, Hashable, Sendable {
        /// The file ends after a keyword that needs a value, such as `login`.
        case missingValue
        /// A quoted value is not closed on its line.
        case unterminatedQuote
        /// A word contains bytes that are not UTF-8.
        case invalidText
        /// The file contains a control character outside quotes.
        case controlCharacter
        /// The file has more than ``NetrcFile/byteLimit`` bytes.
        case tooLarge
    }

    /// The error and its line, as text.
    public var description: String {
        let text =
            switch code {
            case .missingValue: "a value is missing"
            case .unterminatedQuote: "a quoted value does not end on its line"
            case .invalidText: "a value is not UTF-8"
            case .controlCharacter: "a control character is outside quotes"
            case .tooLarge: "the file is larger than \(NetrcFile.byteLimit) bytes"
            }
        return "netrc, line \(line): \(text)"
    }
}
