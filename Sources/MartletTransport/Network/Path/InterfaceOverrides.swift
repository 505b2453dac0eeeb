/// Which interfaces are other than the machine says, by their names.
package struct InterfaceOverrides: Hashable, Sendable {
    private let exact: [String: InterfaceOverride]
    /// Those whose names ended in a star, the longest first.
    private let prefixes: [(prefix: String, override: InterfaceOverride)]

    /// Overrides by names; a star at the end of one stands for any characters.
    package init(_ overrides: [String: InterfaceOverride] = [:]) {
        exact = overrides.filter { !$0.key.hasSuffix("*") }
        prefixes = overrides.filter { $0.key.hasSuffix("*") }
            .map { (prefix: String($0.key.dropLast()), override: $0.value) }
            .sorted { ($0.prefix.utf8.count, $1.prefix) > ($1.prefix.utf8.count, $0.prefix) }
    }

    /// What is said of an interface: by its own name, else by the longest beginning of it.
    package subscript(name: String) -> InterfaceOverride {
        exact[name] ?? prefixes.first { name.hasPrefix($0.prefix) }?.override ?? InterfaceOverride()
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.exact == right.exact && left.prefixes.elementsEqual(right.prefixes, by: ==)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(exact)
    }
}
