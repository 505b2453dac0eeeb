extension XMLTree {
    /// The document as text, to be sent as UTF-8; read again, it is the same tree.
    ///
    /// It declares UTF-8 where it has a declaration. Namespaces that names need and nothing declares are declared where they
    /// are needed. No white space is added within the root element.
    ///
    /// - Throws: An ``XMLWritingError``, where the tree is none that a document can be: a tree that was read never is.
    public func serialized() throws(XMLWritingError) -> String {
        try TreeWriter.text(of: self)
    }
}
