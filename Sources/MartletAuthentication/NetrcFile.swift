import MartletCore
import MartletStorage
import MartletTransport
public import SystemPackage

/// Names and passwords by host, as `~/.netrc` has them for ftp, curl, git and others.
///
/// Nothing is read unless it is asked for. Secrets are shown neither by ``description`` nor by a mirror.
public struct NetrcFile: Hashable, Sendable {
    /// What strikes about a file that was read all the same, as curl does.
    public enum Remark: String, Hashable, Sendable {
        /// Others than its owner may read it.
        case isReadableByOthers
        /// Others than its owner may write it.
        case isWritableByOthers
        /// It belongs to another user.
        case belongsToAnother
    }

    /// The most bytes that a file may have: 1 MiB.
    public static let byteLimit = 1 << 20

    /// The entries in their order.
    public let entries: [NetrcEntry]
    /// What strikes about the file; nothing for a text that came from none.
    public private(set) var remarks: Set<Remark> = []

    /// Reads a text.
    ///
    /// - Throws: What is wrong, with the line.
    public init(_ text: String) throws(NetrcError) { try self.init(bytes: Array(text.utf8)) }

    /// Reads bytes.
    ///
    /// - Throws: What is wrong, with the line.
    public init(bytes: [UInt8]) throws(NetrcError) {
        var parser = NetrcParser(bytes)
        entries = try parser.entries()
    }

    /// Reads a file, on a thread of its own kind.
    ///
    /// - Throws: ``StorageError`` when it cannot be read; ``NetrcError`` when it cannot be understood.
    public static func load(_ path: FilePath) async throws -> NetrcFile {
        let path = path.string
        let (bytes, remarks) = try await BlockingWorkers.shared.run { () throws(StorageError) in
            let file = try FileReader(path: path)
            let bytes = try file.read(at: 0, limit: Int(min(file.byteCount, UInt64(byteLimit) + 1)))
            return (bytes, judgement(of: file.access))
        }
        var file = try NetrcFile(bytes: bytes)
        file.remarks = remarks
        return file
    }

    private static func judgement(of access: FileAccess) -> Set<Remark> {
        var remarks: Set<Remark> = []
        if access.isReadableByOthers { remarks.insert(.isReadableByOthers) }
        if access.isWritableByOthers { remarks.insert(.isWritableByOthers) }
        if !access.isOwnedByThisUser { remarks.insert(.belongsToAnother) }
        return remarks
    }

    /// The entry for a host: the first in the file that is for it, or for all, and has what is needed.
    ///
    /// One with a password comes before one that has but a name. An entry for all hosts stands for itself and for all that
    /// follow it. With a name given, only entries of that name count, and those that have a password and no name.
    ///
    /// - Parameters:
    ///   - host: The host, in any case; an IPv6 address without brackets.
    ///   - login: The name that is looked for; `nil` for any.
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
    /// How many entries there are.
    public var description: String { "netrc of \(entries.count) entries" }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// What a netrc says of one machine.
public struct NetrcEntry: Hashable, Sendable {
    /// The host; `nil` for the entry that stands for all others.
    public let machine: String?
    /// The name; `nil` when none is given.
    public internal(set) var login: String?
    /// The password; `nil` when none is given.
    public internal(set) var password: String?
    /// The additional password that few servers ask for, and HTTP never.
    public internal(set) var account: String?
    /// The line where the entry begins, from 1.
    public let line: Int

    init(machine: String?, line: Int) {
        self.machine = machine
        self.line = line
    }
}

extension NetrcEntry: CustomStringConvertible, CustomReflectable {
    /// The machine and the name, without the password.
    public var description: String { "\(machine.map { "machine \($0)" } ?? "default") login \(login ?? "-")" }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// A netrc that cannot be understood. It does not repeat what the file says.
public struct NetrcError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line, from 1.
    public let line: Int
    /// What is wrong there.
    public let code: Code

    /// What is wrong.
    public enum Code: String, Hashable, Sendable {
        /// A word that must be followed by another is the last one.
        case missingValue
        /// A quoted value that does not end on its line.
        case unterminatedQuote
        /// Bytes that are not UTF-8.
        case invalidText
        /// A control character outside quotes.
        case controlCharacter
        /// More than ``NetrcFile/byteLimit`` bytes.
        case tooLarge
    }

    /// The line and what is wrong there.
    public var description: String {
        let text =
            switch code {
            case .missingValue: "a value is missing"
            case .unterminatedQuote: "a quoted value does not end on its line"
            case .invalidText: "a value is not UTF-8"
            case .controlCharacter: "a control character outside quotes"
            case .tooLarge: "the file is larger than \(NetrcFile.byteLimit) bytes"
            }
        return "netrc, line \(line): \(text)"
    }
}
