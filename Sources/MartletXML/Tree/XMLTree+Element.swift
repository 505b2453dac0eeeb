extension XMLTree {
    /// An element with its attributes and its content.
    public struct Element: Hashable, Sendable {
        /// The name.
        public var name: XMLName
        /// The attributes in their order, without declarations of namespaces.
        public var attributes: [XMLAttribute]
        /// The namespaces that it declares itself.
        public var namespaces: [XMLNamespace]
        /// The content in its order.
        public var children: [Node]

        /// An element.
        public init(
            _ name: XMLName, attributes: [XMLAttribute] = [], namespaces: [XMLNamespace] = [],
            children: [Node] = []
        ) {
            self.name = name
            self.attributes = attributes
            self.namespaces = namespaces
            self.children = children
        }

        /// An element in no namespace with text as its content.
        public init(_ local: String, text: String) {
            self.init(XMLName(local), children: text.isEmpty ? [] : [.text(text)])
        }

        /// The value of the attribute of a local name that is in no namespace, or in the one given; nil when there is
        /// none.
        public subscript(_ local: String, namespace namespace: String? = nil) -> String? {
            let name = XMLName(local, namespace: namespace)
            return attributes.first { $0.name == name }?.value
        }

        /// All text in it and in the elements within, in the order of the document.
        public var text: String {
            var result = ""
            appendText(to: &result)
            return result
        }

        /// The elements directly in it.
        public var elements: [Element] {
            children.compactMap { node in
                guard case .element(let element) = node else { return nil }
                return element
            }
        }

        /// The first element at a path; nil when there is none.
        ///
        /// - Parameters:
        ///   - path: Local names from here downwards, with slashes between them: `channel/item/title`. `*` is any name.
        ///   - namespace: The namespace of each of them; nil, the default, for any or none.
        public func first(_ path: String, in namespace: String? = nil) -> Element? {
            var found: Element?
            walk(XMLTree.steps(path)[...], namespace) { element in
                found = element
                return false
            }
            return found
        }

        /// All elements at a path, in the order of the document. See ``first(_:in:)``.
        public func all(_ path: String, in namespace: String? = nil) -> [Element] {
            var found: [Element] = []
            walk(XMLTree.steps(path)[...], namespace) { element in
                found.append(element)
                return true
            }
            return found
        }

        private func appendText(to result: inout String) {
            for child in children {
                switch child {
                case .text(let text): result += text
                case .element(let element): element.appendText(to: &result)
                case .comment, .instruction: break
                }
            }
        }

        /// Visits what is at the end of a path until told to stop; false when it was.
        @discardableResult
        private func walk(
            _ steps: ArraySlice<String>, _ namespace: String?, _ visit: (Element) -> Bool
        ) -> Bool {
            guard let step = steps.first else { return visit(self) }
            for case .element(let element) in children {
                let isNamed = step == "*" || element.name.local.utf8.elementsEqual(step.utf8)
                guard isNamed, namespace == nil || element.name.namespace == namespace else { continue }
                guard element.walk(steps.dropFirst(), namespace, visit) else { return false }
            }
            return true
        }
    }

    private static func steps(_ path: String) -> [String] {
        path.split(separator: "/").map(String.init)
    }
}
