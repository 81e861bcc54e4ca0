from sqlalchemy.testing.suite import *
