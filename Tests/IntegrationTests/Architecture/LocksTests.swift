import Testing

@Suite("Locks")
struct LocksTests {
    @Test("Each mutex of Sources has one row in Locks.md, and the order of the locks has no cycle")
    func pageIsComplete() throws {
        var declared: [String: [String]] = [:]
        for target in try Repository.contents(of: "Sources") {
            for file in Repository.swiftFiles(below: "Sources/\(target)") {
                declared[target, default: []] += LockPage.mutexes(in: try Repository.text(file))
            }
        }
        // Without mutexes the comparison would check nothing.
        #expect(declared.values.joined().count > 50)
        let problems = LockPage(try Repository.text("Locks.md")).problems(with: declared)
        #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
    }

    @Test(
        "A mutex is found in every form of declaration, under the name of its type",
        arguments: [
            ("final class A {\n    let b = Mutex(0)\n}", ["A.b"]),
            ("struct A {\n    private let b: Mutex<State>\n}", ["A.b"]),
            ("enum A {\n    static let b = Mutex<[Int: Int]>([:])\n}", ["A.b"]),
            (
                "package final class A<B>: C {\n    @usableFromInline let state: Mutex<State>\n}",
                ["A.state"]
            ),
            ("extension A.B {\n    final class C {\n        let d = Mutex(0)\n    }\n}", ["A.B.C.d"]),
            // The previous types end here.
            (
                "final class A {\n    struct B {\n        var c = 0\n    }\n    enum D {}\n    let e = Mutex(B())\n}",
                ["A.e"]
            ),
            // Declarations on one line.
            (
                "enum A {\n    final class B<C: D>: E { let f = Mutex<C?>(nil) }\n    let g = Mutex(0)\n}",
                ["A.B.f", "A.g"]
            ),
            (
                "enum A { final class B { private let c = Mutex(0) } }\nstruct D { let e: Mutex<Int> }",
                ["A.B.c", "D.e"]
            ),
            ("enum A {\n    static func f() { let b = Mutex(0) }\n    class C { init() { d = Mutex(0) } }\n}", ["A.b"]),
            ("class A {\n}\n@safe final class B {\n    let c = Mutex((a: 1, b: 2))\n}", ["B.c"]),
            ("enum A {\n    static func f() {\n        let b = Mutex(0)\n    }\n}", ["A.b"]),
            (
                "class A {\n    #if X\n    let b = Mutex(0)\n    #endif\n    let c = Mutex(0)\n}",
                ["A.b", "A.c"]
            ),
            // Text that contains no declaration.
            (
                "class A {\n    init() {\n        b = Mutex(0)\n        let c = b.withLock { $0 }\n    }\n}",
                []
            ),
            ("class A {\n    /// As let b = Mutex(0).\n    // let c = Mutex(0)\n}", []),
        ] as [(String, [String])])
    func declaration(source: String, found: [String]) {
        #expect(LockPage.mutexes(in: source) == found)
    }

    private static let declared = ["Low": ["A.b", "C.d"], "High": ["E.f"]]

    @Test(
        "A missing, a stale and a duplicate row, an unknown lock and a cycle are found",
        arguments: [
            ("| `E.f` | `A.b` | why |", "| `A.b` | `x` | y |\n| `C.d` | x | y |", []),
            ("", "| `A.b` | x | y |", ["Low: C.d has no row"]),
            (
                "", "| `A.b` | x | y |\n| `C.d` | x | y |\n| `G.h` | x | y |",
                ["Low: the row of G.h has no mutex"]
            ),
            (
                "", "| `A.b` | x | y |\n| `C.d` | x | y |\n| `A.b` | x | y |",
                ["Low: the row of A.b has no mutex"]
            ),
            (
                "", "| `A.b` | x | y |\n| `C.d` | x | y |\n| `E.f` | x | y |",
                ["Low: the row of E.f has no mutex"]
            ),
            (
                "| `G.h` | `A.b` | why |", "| `A.b` | x | y |\n| `C.d` | x | y |",
                ["Order: G.h is no mutex of Sources"]
            ),
            (
                "| `A.b`, `E.f` | `C.d` | why |\n| `C.d` | `E.f` | why |",
                "| `A.b` | x | y |\n| `C.d` | x | y |",
                ["Order: a cycle among A.b, C.d, E.f"]
            ),
        ] as [(String, String, [String])])
    func page(order: String, low: String, problems: [String]) {
        let high = "| `E.f` | x | y |"
        let text =
            "# Locks\n## Order\n\(order)\n## Low\n\(low)\n## High\n| mutex | guards |\n|---|---|\n\(high)\n"
        #expect(LockPage(text).problems(with: Self.declared) == problems)
    }

    @Test(
        "A cycle of any length is found, and none in an order without cycles",
        arguments: [
            ([:], []),
            (["a": ["b", "c"], "b": ["c"]], []),
            (["a": ["a"]], ["a"]),
            (["a": ["b"], "b": ["a"]], ["a", "b"]),
            (["a": ["b"], "b": ["c"], "c": ["d", "a"], "d": ["e"]], ["a", "b", "c"]),
        ] as [([String: Set<String>], [String])])
    func cycle(order: [String: Set<String>], rest: [String]) {
        #expect(LockPage.cyclic(order) == rest)
    }
}

/// The tables of `Locks.md`.
struct LockPage {
    /// The mutexes that have a row, by section.
    private var rows: [String: [String]] = [:]
    /// The mutexes that are locked while another one is held, by the outer one.
    private var order: [String: Set<String>] = [:]

    /// Parses a page. The section "Order" has outer mutexes in the first column and inner ones in the second; the other
    /// sections have the mutexes of a target in the first.
    init(_ text: String) {
        var section = ""
        for line in text.split(separator: "\n") {
            if line.hasPrefix("## ") {
                section = String(line.dropFirst(3))
                continue
            }
            let cells = line.hasPrefix("| `") ? line.split(separator: "|") : []
            guard cells.count > 1 else { continue }
            let first = Self.names(in: cells[0])
            if section == "Order" {
                for outer in first { order[outer, default: []].formUnion(Self.names(in: cells[1])) }
            } else {
                rows[section, default: []] += first
            }
        }
    }

    private static func names(in cell: Substring) -> [String] {
        cell.matches(of: /`([\w.]+)`/).map { String($0.output.1) }
    }

    /// The differences between the page and the mutexes of each target, and the errors in the order.
    func problems(with declared: [String: [String]]) -> [String] {
        var problems: [String] = []
        for section in Set(declared.keys).union(rows.keys).sorted() {
            let (mutexes, listed) = (declared[section] ?? [], rows[section] ?? [])
            problems += Self.surplus(of: mutexes, over: listed).map { "\(section): \($0) has no row" }
            problems += Self.surplus(of: listed, over: mutexes).map {
                "\(section): the row of \($0) has no mutex"
            }
        }
        let named = order.values.reduce(into: Set(order.keys)) { $0.formUnion($1) }
        problems += named.subtracting(declared.values.joined()).sorted().map {
            "Order: \($0) is no mutex of Sources"
        }
        let cyclic = Self.cyclic(order)
        if !cyclic.isEmpty { problems.append("Order: a cycle among \(cyclic.joined(separator: ", "))") }
        return problems
    }

    /// The names that occur more often in the first list than in the second.
    private static func surplus(of names: [String], over others: [String]) -> [String] {
        var rest = others
        return names.filter { name in
            guard let index = rest.firstIndex(of: name) else { return true }
            rest.remove(at: index)
            return false
        }
    }

    /// The locks that are in a cycle, or are locked before one; empty if there is no cycle.
    static func cyclic(_ order: [String: Set<String>]) -> [String] {
        var rest = order
        while true {
            let next = rest.filter { !$0.value.isDisjoint(with: rest.keys) }
            if next.count == rest.count { return rest.keys.sorted() }
            rest = next
        }
    }

    /// The mutexes that a source declares, each as `Type.name`; a local one has the type around its function.
    static func mutexes(in source: String) -> [String] {
        guard source.contains("Mutex") else { return [] }
        let type =
            #/
            (?: @\w+ (?: \([^)]*\) )? \s+ )*
            (?: (?:public|package|private|fileprivate|internal|final|indirect|nonisolated) \s+ )*
            (?:class|struct|enum|actor|extension) \s+ ([\w.]+)
            /#
        let mutex = /[^\/]*\blet (\w+).*[:=] Mutex[<(]/
        var types: [(indentation: Int, name: String)] = []
        var found: [String] = []
        for line in source.split(separator: "\n") {
            let indentation = line.prefix { $0 == " " }.count
            let code = line.dropFirst(indentation)
            if code.hasPrefix("}") {
                if indentation == types.last?.indentation { types.removeLast() }
                continue
            }
            // The types that the line opens: a whole declaration may be on one line.
            var opened: [String] = []
            var rest = code
            while let match = rest.prefixMatch(of: type) {
                opened.append(String(match.output.1))
                rest = rest[match.range.upperBound...].drop { $0 != "{" }.dropFirst().drop { $0 == " " }
            }
            if code.contains("Mutex"), let match = rest.prefixMatch(of: mutex) {
                found.append((types.map(\.name) + opened + [String(match.output.1)]).joined(separator: "."))
            } else if !code.hasSuffix("}"), let name = opened.first {
                types.append((indentation, name))
            }
        }
        return found
    }
}
