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
    public var description: String {
        "\(machine.map { "machine \($0)" } ?? "default") login \(login ?? "-")"
    }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
